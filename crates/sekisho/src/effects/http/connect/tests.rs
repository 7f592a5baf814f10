//! Names that lead where they must not: their answers are made up here, by a lookup that no name server knows.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpListener;

use super::*;

/// Stands in for the public internet, which no test reaches.
const PUBLIC: &str = "127.0.0.2";
const PRIVATE: &str = "127.0.0.1";

fn answered(addresses: &[&str]) -> Later<Vec<SocketAddr>, io::Error> {
    let found = addresses.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0)).collect();
    Box::pin(async move { Ok(found) })
}

/// What a resolver makes of an answer, with the real idea of what is public.
async fn resolved(lookup: Lookup) -> Result<Vec<String>, Fault> {
    let mut resolver = Resolver { gate: Gate(is_public), lookup };
    let passing = resolver.call("shop.example".parse().unwrap()).await;
    passing.map(|found| found.map(|one| one.ip().to_string()).collect()).map_err(|Unreached(fault)| fault)
}

#[tokio::test]
async fn c5_of_a_mixed_answer_only_public_addresses_are_kept() {
    let mixed = resolved(|_| {
        answered(&[
            "10.0.0.1",
            "8.8.8.8",
            "::1",
            "::ffff:169.254.169.254",
            "2606:4700::1111",
            "64:ff9b::10.0.0.1",
        ])
    });
    assert_eq!(mixed.await, Ok(vec!["8.8.8.8".into(), "2606:4700::1111".into()]));
    let carried = resolved(|_| answered(&["::ffff:8.8.8.8", "64:ff9b::808:808"])).await;
    assert_eq!(carried, Ok(vec!["::ffff:8.8.8.8".into(), "64:ff9b::808:808".into()]));
}

#[tokio::test]
async fn c5_a_name_of_which_no_address_is_public_leads_nowhere() {
    let answers: [(Lookup, &str); 5] = [
        (|_| answered(&["127.0.0.1", "10.0.0.1"]), "127.0.0.1"),
        (|_| answered(&["169.254.169.254"]), "169.254.169.254"),
        (|_| answered(&["::ffff:127.0.0.1"]), "::ffff:127.0.0.1"),
        (|_| answered(&["64:ff9b::a9fe:a9fe"]), "64:ff9b::a9fe:a9fe"),
        (|_| answered(&["fd00::1", "2002:7f00:1::1"]), "fd00::1"),
    ];
    for (lookup, seen) in answers {
        let said = format!("shop.example leads to {seen}, which is not a public address");
        assert_eq!(resolved(lookup).await, Err(Fault::Forbidden(said)));
    }
    let nowhere = resolved(|_| answered(&[])).await;
    assert_eq!(nowhere, Err(Fault::Dns("shop.example has no address".into())));
    let broken = resolved(|_| Box::pin(async { Err(io::Error::other("no name server")) })).await;
    assert_eq!(broken, Err(Fault::Dns("shop.example: no name server".into())));
}

/// Two servers at one port, of which only the first may be called; and what is behind a name that leads to them.
struct Street {
    public: TcpListener,
    private: TcpListener,
    connector: Connector,
    uri: Uri,
}

impl Street {
    async fn new(lookup: Lookup) -> Self {
        let (public, private) = loop {
            let public = TcpListener::bind((PUBLIC, 0)).await.unwrap();
            // Taken by somebody else there? Another port, then.
            let port = public.local_addr().unwrap().port();
            if let Ok(private) = TcpListener::bind((PRIVATE, port)).await {
                break (public, private);
            }
        };
        let port = public.local_addr().unwrap().port();
        let uri: Uri = format!("http://shop.example:{port}/").parse().unwrap();
        let gate = Gate(|ip| ip == PUBLIC.parse::<IpAddr>().unwrap());
        let connector = Connector::with(&uri, Resolver { gate, lookup }).unwrap();
        Self { public, private, connector, uri }
    }

    /// Connects once more; an error says why not.
    async fn connect(&mut self) -> Result<(), Fault> {
        let connected = self.connector.call(self.uri.clone()).await;
        connected.map(drop).map_err(|Unreached(fault)| fault)
    }

    /// How many came to each.
    async fn visits(&self) -> (usize, usize) {
        let (mut public, mut private) = (0, 0);
        // A finished connection waits in its listener already: whoever has none within one turn has none.
        while let Ok(Ok(_)) = tokio::time::timeout(Duration::ZERO, self.public.accept()).await {
            public += 1;
        }
        while let Ok(Ok(_)) = tokio::time::timeout(Duration::ZERO, self.private.accept()).await {
            private += 1;
        }
        (public, private)
    }
}

#[tokio::test]
async fn c5_a_mixed_answer_is_connected_to_where_it_is_public() {
    let mut street = Street::new(|_| answered(&[PRIVATE, PUBLIC, PRIVATE])).await;
    for _ in 0..3 {
        assert_eq!(street.connect().await, Ok(()));
    }
    assert_eq!(street.visits().await, (3, 0));
}

#[tokio::test]
async fn c5_a_public_server_that_is_down_gives_way_to_no_private_one() {
    let mut street = Street::new(|_| answered(&[PUBLIC, PRIVATE])).await;
    street.public = TcpListener::bind((PUBLIC, 0)).await.unwrap();
    let result = street.connect().await;
    assert!(matches!(result, Err(Fault::Connect(_))), "{result:?}");
    assert_eq!(street.visits().await, (0, 0));
}

/// DNS rebinding: public when it is checked, private when it is called. It is asked once for each connection, and that
/// answer is both checked and called.
#[tokio::test]
async fn c5_a_name_that_changes_its_mind_is_checked_again_and_never_between() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let mut street = Street::new(|_| {
        let n = ASKED.fetch_add(1, Ordering::Relaxed);
        answered(if n.is_multiple_of(2) { &[PUBLIC] } else { &[PRIVATE] })
    })
    .await;
    for _ in 0..3 {
        assert_eq!(street.connect().await, Ok(()));
        let said = format!("shop.example leads to {PRIVATE}, which is not a public address");
        assert_eq!(street.connect().await, Err(Fault::Forbidden(said)));
    }
    assert_eq!(ASKED.load(Ordering::Relaxed), 6, "once for each connection");
    assert_eq!(street.visits().await, (3, 0));
}
