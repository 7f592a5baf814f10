//! Wrong keys and wrong passwords. Each leaves a trace: a figure by kind, and a line with its network among the requests that
//! were turned away. A network that tries many is told to wait; others are not concerned.
//!
//! Kept in memory, by each process for itself. Whoever shows what can't be guessed passes all the same, so that nobody can
//! shut out others behind one address: that is for the callers to see to.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipnet::IpNet;
use tokio::time::Instant;

use crate::checkpoint::rejection::{Recorder, RefusedRequest};
use crate::env::Env;
use crate::limits::network;
use crate::telemetry::{KindLabels, Metrics};

/// Wrong ones of one network within [`WINDOW`]; whoever has tried so many waits for its end.
const FAILURES_MAX: u32 = 20;
const WINDOW: Duration = Duration::from_mins(1);
/// Networks that are remembered; beyond that new ones only leave their trace.
const NETWORKS_MAX: usize = 10_000;

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedAttempt {
    ApiKey,
    Login,
    /// Two values in a header that says who somebody is.
    HeaderLogin,
}

impl FailedAttempt {
    const ALL: [Self; 3] = [Self::ApiKey, Self::Login, Self::HeaderLogin];

    const fn kind(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Login => "login",
            Self::HeaderLogin => "header_login",
        }
    }

    /// Where it stands among sources in the list of refused requests: no source can have this name.
    const fn place(self) -> &'static str {
        match self {
            Self::ApiKey => API,
            Self::Login | Self::HeaderLogin => CONSOLE,
        }
    }

    const fn reason(self) -> &'static str {
        match self {
            Self::ApiKey => "bad_key",
            Self::Login => "bad_login",
            Self::HeaderLogin => "two_names",
        }
    }

    const fn detail(self) -> &'static str {
        match self {
            Self::ApiKey => "unknown key",
            Self::Login => "wrong name or password",
            Self::HeaderLogin => "the header of console.user_header or rank_header came twice",
        }
    }
}

pub const API: &str = "(api)";
pub const CONSOLE: &str = "(console)";

pub struct Attempts {
    env: Env,
    metrics: Arc<Metrics>,
    recorder: Recorder,
    networks: Mutex<BTreeMap<IpNet, Failures>>,
}

struct Failures {
    since: Instant,
    count: u32,
}

impl Attempts {
    pub fn new(env: Env, metrics: Arc<Metrics>, recorder: Recorder) -> Self {
        for attempt in FailedAttempt::ALL {
            // So that a graph begins at zero, and not with the first attack.
            drop(metrics.failed_attempts.get_or_create(&KindLabels { kind: attempt.kind() }));
        }
        Self { env, metrics, recorder, networks: Mutex::default() }
    }

    /// For how many seconds this network should wait, if it has tried too often.
    pub fn wait(&self, peer: IpAddr) -> Option<u64> {
        self.wait_at(peer, Instant::now())
    }

    fn wait_at(&self, peer: IpAddr, at: Instant) -> Option<u64> {
        let networks = self.networks.lock().expect("no code panics here");
        let failures = networks.get(&network(peer)).filter(|failures| failures.count >= FAILURES_MAX)?;
        let left = (failures.since + WINDOW).checked_duration_since(at)?;
        Some(left.as_secs() + 1)
    }

    /// Counts and records a wrong one. Answers the id under which it is recorded.
    pub fn failed(&self, attempt: FailedAttempt, peer: IpAddr) -> String {
        self.count_at(peer, Instant::now());
        self.metrics.failed_attempts.get_or_create(&KindLabels { kind: attempt.kind() }).inc();
        let at = self.env.wall();
        let request_id = self.env.fresh_seq(at).as_request().to_string();
        self.recorder.record(RefusedRequest {
            source: &Arc::from(attempt.place()),
            peer,
            reason: attempt.reason(),
            detail: attempt.detail(),
            request_id: &request_id,
            at,
        });
        request_id
    }

    fn count_at(&self, peer: IpAddr, at: Instant) {
        let mut networks = self.networks.lock().expect("no code panics here");
        let is_over = |failures: &Failures| at.duration_since(failures.since) >= WINDOW;
        if networks.len() >= NETWORKS_MAX {
            networks.retain(|_, failures| !is_over(failures));
        }
        let before = networks.get(&network(peer)).filter(|failures| !is_over(failures));
        let since = before.map_or(at, |failures| failures.since);
        let count = before.map_or(0, |failures| failures.count).saturating_add(1);
        if networks.len() < NETWORKS_MAX || networks.contains_key(&network(peer)) {
            networks.insert(network(peer), Failures { since, count });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts() -> Attempts {
        Attempts::new(Env::system(), Arc::default(), Recorder::default())
    }

    fn peer(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn h2_a_network_that_tries_many_keys_waits_and_others_do_not() {
        let (attempts, at) = (attempts(), Instant::now());
        for n in 0..FAILURES_MAX {
            assert_eq!(attempts.wait_at(peer("2001:db8::1"), at), None, "{n}");
            attempts.count_at(peer(&format!("2001:db8::{n:x}")), at);
        }
        assert_eq!(attempts.wait_at(peer("2001:db8::ffff"), at), Some(61));
        assert_eq!(attempts.wait_at(peer("2001:db8:1::1"), at), None, "another network");
        assert_eq!(attempts.wait_at(peer("2001:db8::1"), at + WINDOW + Duration::from_millis(1)), None);
        attempts.count_at(peer("2001:db8::1"), at + WINDOW);
        assert_eq!(attempts.wait_at(peer("2001:db8::1"), at + WINDOW), None, "it begins anew");
    }

    #[test]
    fn h2_however_many_networks_try_memory_is_bounded() {
        let (attempts, at) = (attempts(), Instant::now());
        for n in 0..2 * NETWORKS_MAX as u32 {
            attempts.count_at(std::net::Ipv4Addr::from_bits(n << 8).into(), at);
        }
        assert_eq!(attempts.networks.lock().unwrap().len(), NETWORKS_MAX);
        attempts.count_at(peer("192.0.2.1"), at + WINDOW);
        assert_eq!(attempts.networks.lock().unwrap().len(), 1, "those whose minute is over are forgotten");
    }

    #[test]
    fn h2_each_wrong_key_and_password_leaves_a_trace() {
        let (metrics, recorder) = (Arc::<Metrics>::default(), Recorder::default());
        let attempts = Attempts::new(Env::system(), Arc::clone(&metrics), recorder);
        attempts.failed(FailedAttempt::ApiKey, peer("192.0.2.1"));
        attempts.failed(FailedAttempt::Login, peer("192.0.2.1"));
        attempts.failed(FailedAttempt::Login, peer("192.0.2.1"));
        let figures = metrics.encode();
        for line in [r#"failed_attempts_total{kind="api_key"} 1"#, r#"failed_attempts_total{kind="login"} 2"#]
        {
            assert!(figures.contains(line), "{figures}");
        }
        assert!(figures.contains(r#"failed_attempts_total{kind="header_login"} 0"#), "{figures}");
    }
}
