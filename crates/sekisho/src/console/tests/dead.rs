//! Dead letters: found by what they have in common, understood one by one, and redone or put aside in any number.

use sekisho_core::user::Rank;
use sekisho_store::{DeadFilter, FIND_MAX, Store};

use super::event::{ATTACK, Hands, config, dead};
use super::{Room, Seen};

/// A store in which some died on their way to the app.
async fn with_dead(reasons: &[&str]) -> Hands {
    let mut hands = Hands::new().await;
    for (n, reason) in reasons.iter().enumerate() {
        let body = format!("{{\"n\":{n},\"secret\":\"very-secret\"}}");
        hands.take_in(&format!("evt_{n}"), &format!("type{n}.{ATTACK}"), &body, &["app"]).await;
        hands.deliver("app", 500, ATTACK, &dead(reason)).await;
    }
    hands
}

async fn left(hands: &Hands) -> usize {
    hands.store.find_dead(DeadFilter { limit: FIND_MAX, ..DeadFilter::default() }).await.unwrap().len()
}

/// The page of a run when it is over.
pub async fn ended(room: &Room, path: &str) -> Seen {
    assert!(path.starts_with("/console/runs/"), "{path}");
    for _ in 0..100_000 {
        let seen = room.look(Rank::Viewer, path).await;
        assert_eq!(seen.status(), 200, "{}", seen.text);
        if seen.text.contains("button primary") {
            return seen;
        }
        tokio::task::yield_now().await;
    }
    panic!("the run at {path} never ends");
}

#[tokio::test]
async fn h4_dead_letters_are_listed_by_what_they_have_in_common() {
    let hands = with_dead(&["timeout", "server_error", "server_error"]).await;
    let room = Room::with(config(), hands.store()).await;
    let seen = room.look(Rank::Viewer, "/console/dead").await;
    let seen =
        seen.says(&["no answer in time", "the app answered with an error", "to app", "temporary", "type2."]);
    assert!(
        !seen.text.contains("<script>alert") && !seen.text.contains("/console/dead/retry"),
        "{}",
        seen.text
    );
    let seen = room.look(Rank::Operator, "/console/dead?reason=timeout&lane=to:app").await;
    let seen = seen.says(&["/console/dead/retry?lane=to%3Aapp&#38;reason=timeout", "type0."]);
    assert!(!seen.text.contains("type1."), "{}", seen.text);
    room.look_ja(Rank::Viewer, "/console/dead?source=sekisho")
        .await
        .says(&["該当するデッドレターはありません"]);
    room.look(Rank::Viewer, "/console/dead?since=2020-01-01T00:00").await.says(&["type0."]);
    room.look(Rank::Viewer, "/console/dead?until=2020-01-01").await.says(&["No dead letters match"]);
    assert_eq!(room.look(Rank::Viewer, "/console/dead?since=whenever").await.status(), 400);
    let empty = Room::open().await;
    empty.look(Rank::Operator, "/console/dead").await.says(&["No action needed"]);
}

#[tokio::test]
async fn h4_one_is_understood_then_retried_or_put_aside() {
    let hands = with_dead(&["timeout", "uncertain"]).await;
    let room = Room::with(config(), hands.store()).await;
    let letters = hands.store.find_dead(DeadFilter { limit: 2, ..DeadFilter::default() }).await.unwrap();
    let path = |n: usize| format!("/console/dead/{}", letters[n].job.as_message());

    let seen = room.look(Rank::Viewer, &path(0)).await;
    let seen = seen.says(&[
        "unknown whether it arrived",
        "s***@example.jp",
        "/console/events/evt_",
        "&lt;script&gt;",
    ]);
    for hidden in ["<script>alert", "saburo@", "very-secret", "<button class=\"primary\"", "/discard"] {
        assert!(!seen.text.contains(hidden), "{hidden}: {}", seen.text);
    }
    room.look(Rank::Operator, &path(0)).await.says(&["/retry", "/discard", "saburo@example.jp"]);

    assert_eq!(room.act(Rank::Viewer, &format!("{}/retry", path(0)), "").await.status(), 403);
    assert_eq!(left(&hands).await, 2, "a viewer changes nothing");
    let refused = room.act(Rank::Operator, &format!("{}/discard", path(1)), "reason=").await;
    assert_eq!(refused.location(), path(1));
    assert!(refused.told().contains("a reason is required"), "{}", refused.told());
    let done = room.act(Rank::Operator, &format!("{}/discard", path(1)), "reason=known+at+the+bank").await;
    room.look(Rank::Viewer, done.location()).await.says(&["discarded", "known at the bank", "operator"]);
    let done = room.act(Rank::Operator, &format!("{}/retry", path(0)), "").await;
    assert!(done.told().contains("queued again"), "{}", done.told());
    assert_eq!(left(&hands).await, 0);
    // What is no dead letter any more is shown as what it became.
    let seen = room.look(Rank::Viewer, &path(0)).await;
    assert!(seen.location().starts_with("/console/messages/msg_"), "{}", seen.location());
    assert_eq!(room.look(Rank::Viewer, "/console/dead/msg_0000000000007").await.status(), 404);
}

#[tokio::test]
async fn h4_many_are_retried_as_a_run_that_tells_how_far_it_is() {
    let mut hands = with_dead(&["timeout"]).await;
    for n in 0..250 {
        hands.take_in(&format!("evt_more_{n}"), "a.b", "{}", &["app"]).await;
    }
    assert_eq!(hands.deliver("app", 500, "", &dead("server_error")).await.len(), 250);
    hands.take_in("evt_doubt", "a.b", "{}", &["app"]).await;
    hands.deliver("app", 500, "", &dead("uncertain")).await;
    let room = Room::with(config(), hands.store()).await;

    let seen = room.look(Rank::Operator, "/console/dead/retry").await;
    seen.says(&["<strong>251</strong>", "1 are skipped", "no answer in time", "Retry 251"]);
    let started = room.act(Rank::Operator, "/console/dead/retry", "why=repaired&back=/console/dead").await;
    let seen = ended(&room, started.location()).await;
    seen.says(&["finished", "<strong>251</strong> / 251", "repaired", "Uncertain, skipped"]);
    assert_eq!(left(&hands).await, 1, "what is in doubt stays");
    room.look(Rank::Viewer, "/console/dead").await.says(&["Retrying", "251 / 251"]);

    // A second time nothing is left to do; by its reason, what is in doubt is meant.
    ended(&room, room.act(Rank::Operator, "/console/dead/retry", "").await.location()).await.says(&["/ 0"]);
    let named = room.act(Rank::Operator, "/console/dead/retry", "reason=uncertain&why=they+asked").await;
    ended(&room, named.location()).await.says(&["/ 1", "they asked"]);
    assert_eq!(left(&hands).await, 0);
    assert_eq!(room.act(Rank::Viewer, "/console/dead/retry", "").await.status(), 403);
    assert_eq!(room.look(Rank::Viewer, "/console/dead/retry").await.status(), 403);
    assert_eq!(room.look(Rank::Viewer, "/console/runs/0000").await.status(), 404);
}

#[tokio::test]
async fn h4_a_run_can_be_stopped_and_leaves_the_rest_where_it_is() {
    let hands = with_dead(&["timeout", "timeout"]).await;
    let room = Room::with(config(), hands.store()).await;
    let started = room.act(Rank::Operator, "/console/dead/retry", "why=repaired").await;
    let stop = format!("{}/stop", started.location());
    assert_eq!(room.act(Rank::Viewer, &stop, "").await.status(), 403);
    // Nothing of it was done yet: it has its turn when this test waits for it.
    assert_eq!(room.act(Rank::Operator, &stop, "").await.location(), started.location());
    let seen = ended(&room, started.location()).await;
    let seen = seen.says(&["stopped it", "<strong>0</strong> / 2", "Still to do"]);
    assert!(!seen.text.contains("finished") && !seen.text.contains("/stop\""), "{}", seen.text);
    assert_eq!(left(&hands).await, 2);
    let list = room.look(Rank::Viewer, "/console/dead").await.says(&["stopped", "0 / 2"]);
    assert!(!list.text.contains("finished"), "{}", list.text);
    // After its end there is nothing to stop.
    let whole = room.act(Rank::Operator, "/console/dead/retry", "why=repaired").await;
    ended(&room, whole.location()).await.says(&["finished"]);
    room.act(Rank::Operator, &format!("{}/stop", whole.location()), "").await;
    ended(&room, whole.location()).await.says(&["finished"]);
    assert_eq!(room.act(Rank::Operator, "/console/runs/0000/stop", "").await.status(), 404);
}

#[tokio::test]
async fn h4_many_are_put_aside_only_with_a_reason() {
    let hands = with_dead(&["timeout", "timeout", "uncertain"]).await;
    let room = Room::with(config(), hands.store()).await;
    room.look(Rank::Operator, "/console/dead/discard?reason=timeout").await.says(&["Discard 2", "required"]);
    assert_eq!(room.act(Rank::Operator, "/console/dead/discard", "").await.status(), 400);
    let started = room.act(Rank::Operator, "/console/dead/discard", "reason=timeout&why=a+test").await;
    ended(&room, started.location()).await.says(&["finished", "<strong>2</strong> / 2", "a test"]);
    assert_eq!(left(&hands).await, 1);
}
