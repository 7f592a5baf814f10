//! What a store promises about the books.

use std::sync::Arc;

use sekisho_core::change::ChangeSet;
use sekisho_core::state::Posting;

use super::{ALL, APPLIED, NOW, UP, commit, posting};
use crate::{LineFilter, Store, Sum};

async fn book(store: &Arc<dyn Store>, postings: Vec<Posting>) {
    assert_eq!(commit(store, ChangeSet { postings, ..ChangeSet::nothing(NOW) }).await, APPLIED);
}

pub async fn sums(store: Arc<dyn Store>) {
    assert_eq!(store.find_sums(None).await.expect(UP), []);
    book(&store, vec![posting("cash", 500, "p1"), posting("owed", -500, "p1")]).await;
    book(&store, vec![posting("owed", 200, "p1"), posting("cash", -200, "p1")]).await;
    let dollars =
        |account: &str, amount| Posting { currency: "USD".into(), ..posting(account, amount, "p2") };
    book(&store, vec![dollars("cash", 3), dollars("owed", -3)]).await;
    let tests = |account: &str, amount| Posting { livemode: Some(false), ..posting(account, amount, "p3") };
    book(&store, vec![tests("cash", 1 << 40), tests("owed", -(1 << 40))]).await;
    let modeless = |account: &str, amount| Posting { livemode: None, ..posting(account, amount, "p4") };
    book(&store, vec![modeless("cash", 7), modeless("owed", -7)]).await;
    let sum = |currency: &str, livemode, amount, lines| Sum {
        account: "cash".into(),
        currency: currency.into(),
        livemode,
        amount,
        lines,
    };
    let cash = [
        sum("JPY", None, 7, 1),
        sum("JPY", Some(false), 1 << 40, 1),
        sum("JPY", Some(true), 300, 2),
        sum("USD", Some(true), 3, 1),
    ];
    assert_eq!(store.find_sums(Some("cash".into())).await.expect(UP), cash);
    let owed = cash.clone().map(|sum| Sum { account: "owed".into(), amount: -sum.amount, ..sum });
    assert_eq!(store.find_sums(None).await.expect(UP), [cash, owed].concat());
    assert_eq!(store.find_sums(Some("none".into())).await.expect(UP), []);
}

pub async fn lines(store: Arc<dyn Store>) {
    for n in 0..6 {
        let payment = format!("p{}", n % 2);
        let owed = Posting { cause: "出金".into(), livemode: None, ..posting("owed", -n, &payment) };
        book(&store, vec![posting("cash", n, &payment), owed]).await;
    }
    let find = async |filter: LineFilter| store.find_lines(filter).await.expect(UP);
    let all = || LineFilter { limit: ALL, ..LineFilter::default() };
    let found = find(all()).await;
    assert_eq!(found.len(), 12);
    assert!(found.windows(2).all(|pair| pair[0].number > pair[1].number), "newest first");
    assert!(found.iter().all(|line| line.at == NOW));
    let owed = Posting { cause: "出金".into(), livemode: None, ..posting("owed", -5, "p1") };
    assert_eq!(
        found[..2].iter().map(|line| &line.posting).collect::<Vec<_>>(),
        [&owed, &posting("cash", 5, "p1")]
    );
    let cash = find(LineFilter { account: Some("cash".into()), ..all() }).await;
    assert_eq!(cash.iter().map(|line| line.posting.amount).collect::<Vec<_>>(), [5, 4, 3, 2, 1, 0]);
    let both = LineFilter { account: Some("cash".into()), payment: Some("p0".into()), ..all() };
    assert_eq!(find(both).await.iter().map(|line| line.posting.amount).collect::<Vec<_>>(), [4, 2, 0]);
    let mut paged = Vec::new();
    let mut before = None;
    loop {
        let page = find(LineFilter { before, limit: 5, ..all() }).await;
        let Some(last) = page.last() else { break };
        before = Some(last.number);
        paged.extend(page);
    }
    assert_eq!(paged, found);
    assert_eq!(find(LineFilter { limit: 0, ..all() }).await, []);
}
