//! Who may enter the console: what each rank allows, when somebody is shut out for guessing, and which sessions count.
//!
//! A user is one thing with its sessions inside, so that one read answers "who is this?", and one write takes every
//! session back. Passwords and tokens come in as hashes; nothing here can be entered with.

mod device;
mod invite;
mod rules;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::audit;
use crate::state::{Key, Kind};
use crate::time::Time;

pub use device::{proof_of_device, shown_device};
pub use invite::{FIRST_INVITE, Invite, invite_key};
pub use rules::{Joining, UserRefusal, change_user, withdraw_invite};

/// What somebody may do; each may do all that the one before may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rank {
    /// Looks.
    Viewer,
    /// Retries, replays, resends, resets.
    Operator,
    /// Says who else may.
    Admin,
}

impl Rank {
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rank| rank.name() == text)
    }

    pub const fn role(self) -> audit::Role {
        match self {
            Self::Viewer => audit::Role::Viewer,
            Self::Operator => audit::Role::Operator,
            Self::Admin => audit::Role::Admin,
        }
    }
}

/// Wrong passwords in a row, from one place, before the door stays shut for that place for a while.
const FAILURES_FREE: u32 = 5;
const SHUT_MS: i64 = 60_000;
const SHUT_MS_MAX: i64 = 15 * 60_000;
/// After so long without a wrong one they are forgotten.
const FADE_MS: i64 = 24 * 3_600_000;
/// Places from which wrong passwords are remembered; the one that was heard of longest ago makes room.
const PLACES_MAX: usize = 50;
/// Wrong passwords are noted in the audit log this often; one entry stands for all since the last.
const NOTED_EVERY_MS: i64 = 60_000;
/// How long a session lives after its last use, and at all.
const IDLE_MS_MAX: i64 = 12 * 3_600_000;
const SESSION_MS_MAX: i64 = 7 * 24 * 3_600_000;
/// That a session was used is noted this often.
const SEEN_EVERY_MS: i64 = 5 * 60_000;
/// Sessions of one user; the one that was used longest ago makes room.
pub const SESSIONS_MAX: usize = 20;
/// Of what a browser says of itself, so many characters are kept.
const AGENT_LETTERS_MAX: usize = 200;
pub const NAME_LETTERS_MAX: usize = 64;
pub const PASSWORD_LETTERS_MIN: usize = 10;
pub const PASSWORD_BYTES_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub rank: Rank,
    /// As argon2 writes it.
    pub password: String,
    pub created_at: Time,
    /// May not enter any more.
    pub disabled_at: Option<Time>,
    /// Wrong passwords, by where they came from: nobody shuts out others.
    pub misses: Vec<Misses>,
    /// Wrong passwords since the audit log last told of some, and when that was.
    pub unnoted: u32,
    pub noted_at: Option<Time>,
    pub entered_at: Option<Time>,
    pub sessions: Vec<Session>,
}

/// Wrong passwords in a row from one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misses {
    /// A network, or a browser that logged in before.
    pub place: String,
    pub failures: u32,
    pub missed_at: Time,
    pub shut_until: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Of its token.
    pub hash: String,
    pub began_at: Time,
    pub seen_at: Time,
    /// What it was begun with: the browser's own words, and where from.
    pub agent: String,
    pub peer: String,
}

impl Session {
    /// One that begins now, known by the hash of its token.
    pub fn begin(hash: String, agent: &str, peer: &str, at: Time) -> Self {
        let agent = agent.chars().filter(|letter| !letter.is_control()).take(AGENT_LETTERS_MAX).collect();
        Self { hash, began_at: at, seen_at: at, agent, peer: peer.to_owned() }
    }

    fn is_alive(&self, now: Time) -> bool {
        now.ms() - self.seen_at.ms() < IDLE_MS_MAX && now.ms() - self.began_at.ms() < SESSION_MS_MAX
    }
}

/// What is decided about a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserAct {
    Rank(Rank),
    /// Shut out, with every session.
    Disable,
    Enable,
    EndSessions,
}

impl User {
    pub fn key(name: &str) -> Key {
        Key::new(Kind::User, name)
    }

    pub fn new(rank: Rank, password: String, at: Time) -> Self {
        Self {
            rank,
            password,
            created_at: at,
            disabled_at: None,
            misses: Vec::new(),
            unnoted: 0,
            noted_at: None,
            entered_at: None,
            sessions: Vec::new(),
        }
    }

    /// Until when no password is tried for this user that comes from there.
    pub fn shut(&self, place: &str, now: Time) -> Option<Time> {
        let own = self.misses.iter().find(|misses| misses.place == place)?;
        own.shut_until.filter(|until| *until > now)
    }

    /// Until when the door is shut for anybody.
    pub fn shut_anywhere(&self, now: Time) -> Option<Time> {
        self.misses.iter().filter_map(|misses| misses.shut_until).filter(|until| *until > now).max()
    }

    /// A wrong password. From the fifth on the door stays shut for that place, twice as long each time. Says of how many
    /// wrong ones the audit log should tell now, if it should.
    pub fn missed(&mut self, place: &str, now: Time) -> Option<u32> {
        self.misses.retain(|misses| now.ms() - misses.missed_at.ms() < FADE_MS);
        let before = self.misses.iter().position(|misses| misses.place == place);
        let before = before.map_or(0, |at| self.misses.remove(at).failures);
        let failures = before.saturating_add(1);
        let shut_until = failures
            .checked_sub(FAILURES_FREE)
            .map(|over| now.plus_ms(SHUT_MS.saturating_mul(1 << over.min(10)).min(SHUT_MS_MAX)));
        if self.misses.len() == PLACES_MAX {
            self.misses.remove(0);
        }
        self.misses.push(Misses { place: place.to_owned(), failures, missed_at: now, shut_until });
        self.unnoted = self.unnoted.saturating_add(1);
        if self.noted_at.is_some_and(|at| now.ms() - at.ms() < NOTED_EVERY_MS) {
            return None;
        }
        self.noted_at = Some(now);
        Some(std::mem::take(&mut self.unnoted))
    }

    /// Begins a session with the right password; `kept` is what it was compared with. Not if the user was disabled or
    /// shut out, or has another password, meanwhile.
    pub fn enter(&mut self, kept: &str, place: &str, session: Session) -> bool {
        let is_out = self.disabled_at.is_some() || self.password != kept;
        let is_out = is_out || self.shut(place, session.began_at).is_some();
        if !is_out {
            self.entered(place, session);
        }
        !is_out
    }

    /// The right password, from there: a session begins.
    pub fn entered(&mut self, place: &str, session: Session) {
        self.misses.retain(|misses| misses.place != place);
        self.entered_at = Some(session.began_at);
        self.sessions.retain(|one| one.is_alive(session.began_at));
        self.sessions.push(session);
        self.sessions.sort_by_key(|one| std::cmp::Reverse(one.seen_at));
        self.sessions.truncate(SESSIONS_MAX);
    }

    /// Whether they can let others in.
    pub fn is_admin(&self) -> bool {
        self.rank == Rank::Admin && self.disabled_at.is_none()
    }

    /// What was decided about them. Answers what the audit log calls it, with the details.
    pub fn carry_out(&mut self, act: UserAct, at: Time) -> (&'static str, Value) {
        match act {
            UserAct::Rank(rank) => {
                let details = json!({ "before": self.rank, "after": rank });
                self.rank = rank;
                ("user.rank_changed", details)
            }
            UserAct::Disable => {
                self.disabled_at = Some(at);
                self.sessions.clear();
                ("user.disabled", json!({}))
            }
            UserAct::Enable => {
                self.disabled_at = None;
                self.misses.clear();
                ("user.enabled", json!({}))
            }
            UserAct::EndSessions => {
                self.sessions.clear();
                ("user.sessions_ended", json!({}))
            }
        }
    }

    /// The living session with this hash, of somebody who may still enter.
    pub fn session(&self, hash: &str, now: Time) -> Option<&Session> {
        let alive = |session: &&Session| session.hash == hash && session.is_alive(now);
        self.sessions.iter().find(alive).filter(|_| self.disabled_at.is_none())
    }

    pub fn living_sessions(&self, now: Time) -> impl Iterator<Item = &Session> {
        self.sessions.iter().filter(move |session| session.is_alive(now))
    }

    /// Notes that a session is in use; says whether that is worth writing down.
    pub fn seen(&mut self, hash: &str, now: Time) -> bool {
        let used = self.sessions.iter_mut().find(|session| session.hash == hash);
        let Some(used) = used.filter(|session| now.ms() - session.seen_at.ms() >= SEEN_EVERY_MS) else {
            return false;
        };
        used.seen_at = now;
        true
    }
}

/// What is wrong with a name for a user. The name is also what the audit log calls them.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let is_plain = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || ['.', '_', '-', '@', '+'].contains(&letter)
    };
    if name.is_empty() || name.len() > NAME_LETTERS_MAX || !name.chars().all(is_plain) {
        return Err("1 to 64 of a–z, 0–9 and . _ - @ +");
    }
    // Whoever acts at a terminal is called so.
    if name == "cli" { Err("another name than cli") } else { Ok(()) }
}

/// What is wrong with a password for a user of this name.
pub fn check_password(name: &str, password: &str) -> Result<(), &'static str> {
    if password.chars().count() < PASSWORD_LETTERS_MIN {
        return Err("at least 10 characters");
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err("at most 1000 bytes");
    }
    let mut letters = password.chars();
    let first = letters.next();
    if letters.all(|letter| Some(letter) == first) || password.to_lowercase().contains(name) && name.len() > 3
    {
        return Err("not one character repeated, and not the name");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn session(hash: &str, at: Time) -> Session {
        Session { hash: hash.into(), began_at: at, seen_at: at, agent: String::new(), peer: String::new() }
    }

    fn user() -> User {
        User::new(Rank::Operator, "hash".into(), NOW)
    }

    #[test]
    fn h1_each_rank_may_do_what_the_one_before_may() {
        assert!(Rank::Viewer < Rank::Operator && Rank::Operator < Rank::Admin);
        for rank in Rank::ALL {
            assert_eq!(Rank::parse(rank.name()), Some(rank));
            assert_eq!(rank.role().name(), rank.name());
        }
    }

    #[test]
    fn h1_who_guesses_is_shut_out_longer_each_time_and_never_for_good() {
        let mut user = user();
        for _ in 0..4 {
            user.missed("a", NOW);
        }
        assert_eq!(user.shut("a", NOW), None);
        let waits: Vec<_> = (0..6)
            .map(|_| {
                user.missed("a", NOW);
                user.shut("a", NOW).unwrap().ms() - NOW.ms()
            })
            .collect();
        assert_eq!(waits, [60_000, 120_000, 240_000, 480_000, 900_000, 900_000]);
        assert_eq!(user.shut("a", NOW.plus_ms(900_000)), None);
        user.entered("a", session("a", NOW));
        assert_eq!((user.misses.len(), user.shut("a", NOW)), (0, None));
        (0..4).for_each(|_| _ = user.missed("a", NOW));
        user.missed("a", NOW.plus_ms(FADE_MS));
        assert_eq!(user.misses[0].failures, 1, "yesterday's slips are forgotten");
    }

    #[test]
    fn h1_who_guesses_shuts_the_door_for_nobody_else() {
        let mut user = user();
        (0..9).for_each(|_| _ = user.missed("attacker", NOW));
        assert!(user.shut("attacker", NOW).is_some() && user.shut_anywhere(NOW).is_some());
        assert_eq!(user.shut("home", NOW), None);
        user.entered("home", session("a", NOW));
        assert!(user.shut("attacker", NOW).is_some(), "somebody else's right password opens nothing to them");
        for n in 0..1_000 {
            user.missed(&format!("place {n}"), NOW.plus_ms(1));
        }
        assert_eq!(user.misses.len(), PLACES_MAX, "however many places there are");
    }

    #[test]
    fn h1_the_log_tells_of_wrong_passwords_once_a_minute_with_how_many() {
        let mut user = user();
        let told: Vec<_> = (0..130).map(|n| user.missed("a", NOW.plus_ms(n * 1_000))).collect();
        let told: Vec<_> = told.into_iter().flatten().collect();
        assert_eq!(told, [1, 60, 60]);
    }

    #[test]
    fn h1_a_session_ends_when_unused_or_old_or_when_its_user_is_disabled() {
        let mut user = user();
        user.entered("home", session("a", NOW));
        assert!(user.session("a", NOW.plus_ms(IDLE_MS_MAX - 1)).is_some());
        assert!(user.session("a", NOW.plus_ms(IDLE_MS_MAX)).is_none());
        assert!(user.session("b", NOW).is_none());
        let mut at = NOW;
        while at.ms() - NOW.ms() < SESSION_MS_MAX {
            assert!(user.session("a", at).is_some());
            user.seen("a", at);
            at = at.plus_ms(IDLE_MS_MAX / 2);
        }
        assert!(user.session("a", at).is_none(), "however busy");
        user.entered("home", session("b", NOW));
        user.disabled_at = Some(NOW);
        assert!(user.session("b", NOW).is_none());
    }

    #[test]
    fn h1_what_is_decided_about_a_user_is_what_the_log_says_of_it() {
        let check = |act: UserAct, action: &str, details: Value, (is_admin, sessions): (bool, usize)| {
            let mut user = User::new(Rank::Admin, "hash".into(), NOW);
            user.entered("home", session("a", NOW));
            assert_eq!(user.carry_out(act, NOW), (action, details), "{act:?}");
            assert_eq!((user.is_admin(), user.sessions.len()), (is_admin, sessions), "{act:?}");
        };
        let ranks = json!({ "before": "admin", "after": "viewer" });
        check(UserAct::Rank(Rank::Viewer), "user.rank_changed", ranks, (false, 1));
        check(UserAct::Disable, "user.disabled", json!({}), (false, 0));
        check(UserAct::Enable, "user.enabled", json!({}), (true, 1));
        check(UserAct::EndSessions, "user.sessions_ended", json!({}), (true, 0));
    }

    #[test]
    fn h1_who_is_let_in_again_can_enter_at_once() {
        let mut user = user();
        (0..9).for_each(|_| _ = user.missed("a", NOW));
        user.carry_out(UserAct::Disable, NOW);
        user.carry_out(UserAct::Enable, NOW);
        assert_eq!((user.disabled_at, user.misses.len(), user.shut("a", NOW)), (None, 0, None));
    }

    #[test]
    fn h1_sessions_are_few_and_the_oldest_makes_room() {
        let mut user = user();
        for n in 0..SESSIONS_MAX as i64 + 5 {
            user.entered("home", session(&n.to_string(), NOW.plus_ms(n)));
        }
        assert_eq!(user.sessions.len(), SESSIONS_MAX);
        let now = NOW.plus_ms(100);
        assert!(user.session("4", now).is_none() && user.session("5", now).is_some());
        assert!(!user.seen("5", now), "not every request is worth a write");
        assert!(user.seen("5", now.plus_ms(SEEN_EVERY_MS)));
    }

    #[test]
    fn h1_a_password_that_was_right_a_moment_ago_opens_nothing() {
        let enter = |user: &mut User| user.enter("hash", "home", session("a", NOW));
        let mut mika = user();
        assert!(enter(&mut mika) && mika.session("a", NOW).is_some());
        let mut disabled = User { disabled_at: Some(NOW), ..user() };
        let mut changed = User { password: "another".into(), ..user() };
        let mut shut = user();
        (0..9).for_each(|_| _ = shut.missed("home", NOW));
        for user in [&mut disabled, &mut changed, &mut shut] {
            assert!(!enter(user) && user.sessions.is_empty());
        }
    }

    #[test]
    fn h1_names_and_passwords_that_would_not_do() {
        for name in ["", "Mika", "mi ka", "美香", "<b>", "cli", &"a".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("mika.s@example.jp").is_ok());
        for password in ["", "short", "aaaaaaaaaaaaaa", "my-Mika-password", &"ab".repeat(501)] {
            assert!(check_password("mika", password).is_err(), "{password}");
        }
        assert!(check_password("mika", "関所を通る者は名を名乗れ").is_ok());
    }
}
