//! What is checked of every provider's client in the same way.

use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::job::Class;
use sekisho_lab::app::Reply;
use sekisho_lab::providers::Fake;
use serde_json::Value;

use super::*;
use crate::effects::listing::{ListedPage, Lister};

/// Far away: no test waits for it.
pub const LONG: Duration = Duration::from_secs(20);
pub const NOW: Time = Time::from_ms(1_770_000_000_000);
/// Most pages that a test may have.
const PAGES_MAX: usize = 10;

/// The ids of a page, by the field that holds them.
pub fn ids(listing: &ListedPage, field: &str) -> Vec<String> {
    let id = |item: &ApiObject| {
        serde_json::from_str::<Value>(item.get()).unwrap()[field].as_str().unwrap().to_owned()
    };
    listing.items.iter().map(id).collect()
}

/// All events of a time, page by page, and how many pages there were.
pub async fn all_events(lister: &dyn Lister, since: Time, until: Time, field: &str) -> (Vec<String>, usize) {
    let (mut found, mut cursor) = (Vec::new(), None);
    for pages in 1..=PAGES_MAX {
        let page = lister.events(since, until, cursor.as_deref(), NOW).await.result.unwrap();
        found.extend(ids(&page, field));
        match page.next {
            Some(next) => cursor = Some(next),
            None => return (found, pages),
        }
    }
    panic!("the list has no end: {found:?}");
}

/// All objects of a kind, page by page, and how many pages there were.
pub async fn all_objects(lister: &dyn Lister, kind: &str, since: Time) -> (Vec<String>, usize) {
    let (mut found, mut cursor) = (Vec::new(), None);
    for pages in 1..=PAGES_MAX {
        let page = lister.list(kind, since, cursor.as_deref(), NOW).await.result.unwrap();
        found.extend(ids(&page, "id"));
        match page.next {
            Some(next) => cursor = Some(next),
            None => return (found, pages),
        }
    }
    panic!("the list has no end: {found:?}");
}

/// Each answer has its meaning, and the next call is made as if nothing had been.
pub async fn refusals<T>(fake: &Fake, call: impl AsyncFn() -> ApiCall<T>) {
    for (status, class, reason, blames) in [
        (302, Class::Terminal, "provider_redirect", false),
        (400, Class::Terminal, "provider_refused", false),
        (403, Class::Terminal, FORBIDDEN, false),
        (404, Class::Terminal, NOT_FOUND, false),
        (409, Class::Transient, "provider_conflict", false),
        (429, Class::Transient, "provider_rate_limited", true),
        (500, Class::Transient, UNAVAILABLE, true),
        (503, Class::Transient, UNAVAILABLE, true),
        (200, Class::Transient, "broken", true),
    ] {
        fake.order(Reply::status(status).with_header("retry-after", "7").with_body("<html>"));
        let ApiCall { result, attempt, .. } = call().await;
        let Err(failure) = result else { panic!("{status} is no success") };
        assert_eq!(
            (failure.class, failure.reason, failure.blames_destination),
            (class, reason, blames),
            "{status}"
        );
        assert_eq!((attempt.status, attempt.reason.as_deref()), (Some(i32::from(status)), Some(reason)));
        assert!(status == 200 || failure.retry_after_ms == Some(7_000), "{status}: {failure:?}");
        assert!(call().await.result.is_ok(), "after {status}");
    }
}

/// A wrong key is said to be wrong, in the provider's own words.
pub async fn wrong_key<T>(call: ApiCall<T>, words: &str) {
    let Err(failure) = call.result else { panic!("a wrong key is let in") };
    assert_eq!((failure.class, failure.reason), (Class::Terminal, UNAUTHORIZED));
    assert!(failure.error.contains(words), "{}", failure.error);
}

/// Whatever is said back to us, no secret is kept.
pub async fn nothing_leaks<T>(fake: &Fake, secrets: &[&str], call: impl AsyncFn() -> ApiCall<T>) {
    for status in [200, 400, 500] {
        for secret in secrets {
            fake.order(Reply::status(status).with_header("x-echo", secret).with_body(secret));
            let ApiCall { result, attempt, .. } = call().await;
            let seen = format!("{attempt:?} {:?}", result.err());
            assert!(!seen.contains(secret) && seen.contains("(hidden)"), "{seen}");
        }
    }
}
