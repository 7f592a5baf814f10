//! Many nodes that start on an empty PostgreSQL at once. What every store promises is tested beside the stores.

use std::collections::BTreeSet;
use std::sync::Arc;

use sekisho_core::Time;
use sekisho_store::conformance::Arrivals;
use sekisho_store::{Access, EventFilter};

use crate::support::{Gateway, Place, Provider, runtime};

const SERVE: Access = Access::Serve { allow_unsafe_durability: false };

#[test]
fn h5_eight_nodes_start_on_an_empty_postgresql_at_once() {
    let place = Arc::new(Place::postgres());
    runtime().block_on(async {
        let nodes: Vec<_> = (0..8)
            .map(|n| {
                let place = Arc::clone(&place);
                tokio::spawn(async move {
                    let store = place.open(SERVE).await;
                    let joined = store.join(Time::from_ms(1_780_000_000_000)).await.unwrap();
                    let mut new = Arrivals::new(joined.epoch.0);
                    let rows = vec![new.event("same"), new.event(&format!("own {n}"))];
                    store.admit(rows.into(), None).await.unwrap();
                    joined.epoch
                })
            })
            .collect();
        let mut epochs = BTreeSet::new();
        for node in nodes {
            epochs.insert(node.await.unwrap());
        }
        assert_eq!(epochs.len(), 8, "an epoch was given twice");
        let filter = EventFilter { limit: 100, ..EventFilter::default() };
        assert_eq!(place.look().await.find_events(filter).await.unwrap().events.len(), 9);
    });
}

#[test]
fn h5_processes_started_together_share_one_schema() {
    let place = Arc::new(Place::postgres());
    let starting: Vec<_> = (0..4)
        .map(|_| {
            let place = Arc::clone(&place);
            std::thread::spawn(move || Gateway::open(&place))
        })
        .collect();
    let nodes: Vec<_> = starting.into_iter().map(|node| node.join().unwrap()).collect();
    for (n, node) in nodes.iter().enumerate() {
        assert_eq!(node.send(&Provider::stripe().event(&format!("evt_{n}"))).status, 204);
    }
    assert_eq!(nodes[0].event_ids(), ["evt_0", "evt_1", "evt_2", "evt_3"]);
}
