//! Passwords, as argon2 keeps them. Each takes 19 MiB and some 20 ms, so only a few are worked on at once: who tries
//! thousands waits in line, and the memory stays.

use std::sync::LazyLock;
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::sync::Semaphore;

use crate::refusal::{Refusal, Result};

/// Worked on at once in this process.
static ROOM: Semaphore = Semaphore::const_new(2);
/// Who may wait for that; whoever comes then is told at once.
static LINE: Semaphore = Semaphore::const_new(50);
const ROOM_WITHIN: Duration = Duration::from_secs(5);

/// What is compared when there is no such user, so that the answer takes as long.
static NOBODY: LazyLock<String> = LazyLock::new(|| work_out("nobody has this password").unwrap_or_default());

pub async fn hash(password: &str) -> Result<String> {
    let password = password.to_owned();
    apart(move || work_out(&password)).await?.ok_or_else(no_chance)
}

/// Whether it is the password behind this hash; without a hash it is not, after the same time.
pub async fn matches(password: &str, kept: Option<&str>) -> Result<bool> {
    let (password, kept) = (password.to_owned(), kept.map(str::to_owned));
    apart(move || {
        let hash = kept.as_deref().unwrap_or(&NOBODY);
        let is_it = PasswordHash::new(hash)
            .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
        is_it && kept.is_some()
    })
    .await
}

fn work_out(password: &str) -> Option<String> {
    let hash: Option<PasswordHash> = Argon2::default().hash_password(password.as_bytes()).ok();
    hash.map(|hash| hash.to_string())
}

/// The place is held by the work, not by whoever waits for it: who hangs up does not make room for another.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let busy = || Refusal::RetryLater {
        detail: "too many log-ins at once; try again in a moment".into(),
        seconds: ROOM_WITHIN.as_secs(),
    };
    let _waiting = LINE.try_acquire().map_err(|_| busy())?;
    let room = tokio::time::timeout(ROOM_WITHIN, ROOM.acquire()).await.map_err(|_| busy())?;
    let room = room.expect("the semaphore is never closed");
    let held = move || {
        let _room = room;
        work()
    };
    #[allow(clippy::disallowed_methods, reason = "it computes for long, and nothing else changes meanwhile")]
    tokio::task::spawn_blocking(held).await.map_err(|_| no_chance())
}

fn no_chance() -> Refusal {
    Refusal::RetryLater { detail: "the server could not check the password; try again".into(), seconds: 5 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn h1_a_password_opens_only_its_own_hash() {
        let kept = hash("一期一会でございます").await.unwrap();
        assert!(kept.starts_with("$argon2id$"), "{kept}");
        assert!(matches("一期一会でございます", Some(&kept)).await.unwrap());
        assert!(!matches("一期一会", Some(&kept)).await.unwrap());
        assert!(!matches("一期一会でございます", Some("what is this")).await.unwrap());
        assert!(!matches("nobody has this password", None).await.unwrap());
        assert_ne!(hash("一期一会でございます").await.unwrap(), kept, "each has its own salt");
    }
}
