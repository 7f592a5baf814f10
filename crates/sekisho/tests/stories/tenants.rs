//! H2, G5, D7: what two tenants call by the same id are two. A tenant's key sees, makes, changes and deletes its own tenant's
//! customers, staff and subjects, can't tell another tenant's id from a free one, and moves nobody else's mail or money.

use sekisho_lab::http;
use sekisho_lab::smtp::{Smtp, SmtpBehaviour};
use serde_json::{Value, json};

use super::notices::mail;
use crate::support::{Gateway, Letter, Place, Provider, each_store, stripe_source, wait_until};

const OPERATE: &str = "canary-operate-key-0123456789";

const RECEIPT: &str = "[[notify]]\nname = \"receipt\"\nevents = [\"payment.paid\"]\nto = \"customer\"\nchannel = \"mail\"\n\
                       template = \"payment-received\"\n";

fn gateway(place: &Place, more: &str) -> Gateway {
    let key = "[[key]]\nname = \"ops\"\nsecret = \"env:OPS\"\nscopes = [\"admin\"]\n";
    Gateway::with_env(place, &(stripe_source("") + key + more), &[("OPS", OPERATE)])
}

/// Whoever shows a key.
struct Client<'g> {
    gateway: &'g Gateway,
    key: String,
}

impl<'g> Client<'g> {
    fn operator(gateway: &'g Gateway) -> Self {
        Self { gateway, key: OPERATE.into() }
    }

    fn of_tenant(gateway: &'g Gateway, tenant: &str) -> Self {
        let order = json!({ "name": tenant, "scopes": ["operate"], "tenant": tenant });
        let (status, made) = Self::operator(gateway).ask("POST", "/v1/keys", &order);
        assert_eq!(status, 201, "{made}");
        Self { gateway, key: made["key"].as_str().unwrap().into() }
    }

    fn ask(&self, method: &str, path: &str, order: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {}", self.key);
        let headers = [("authorization", bearer.as_str())];
        let body = if order.is_null() { String::new() } else { order.to_string() };
        let answer = http::request(self.gateway.address(), method, path, &headers, body.as_bytes()).unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, &Value::Null)
    }

    fn delete(&self, path: &str) -> (u16, Value) {
        self.ask("DELETE", path, &Value::Null)
    }

    fn ids(&self, path: &str) -> Vec<String> {
        let (status, page) = self.get(path);
        assert_eq!(status, 200, "{path}: {page}");
        let text = |item: &Value, name: &str| item[name].as_str().unwrap_or("-").to_owned();
        let items = page["items"].as_array().unwrap();
        items.iter().map(|item| format!("{}/{}", text(item, "tenant"), text(item, "id"))).collect()
    }
}

/// One of each list, with nothing but an id and a word that tells whose it is.
fn order(list: &str, id: &str, word: &str) -> Value {
    match list {
        "customers" => json!({ "id": id, "name": word, "email": format!("{word}@example.jp") }),
        "staff" => json!({ "id": id, "family_name": word, "email": format!("{word}@example.jp") }),
        _ => json!({ "id": id, "name": word, "renewal_due_on": "2026-12-01" }),
    }
}

/// Everything that a key is answered about an id that it does not have, without what differs by itself.
fn answers(client: &Client<'_>, list: &str, id: &str) -> Vec<(u16, String)> {
    let path = format!("/v1/{list}/{id}");
    let make = order(list, id, "mine");
    let row = json!({ "kind": list.strip_suffix('s').unwrap_or(list), "rows": [make], "dry_run": true });
    let asked = [
        client.get(&path),
        client.get(&format!("/v1/balances/{id}")),
        client.get(&format!("/v1/payments?customer={id}")),
        client.delete(&path),
        client.ask("POST", "/v1/import", &row),
        client.ask("POST", &format!("/v1/{list}"), &make),
        client.get(&path),
        client.ask("POST", "/v1/payments", &json!({ "amount": 5, "currency": "jpy", "customer": id })),
        client.delete(&path),
        client.get(&path),
    ];
    let plain = |mut answer: Value| {
        for own in ["id", "created_at", "changed_at"] {
            answer.as_object_mut().map(|answer| answer.remove(own));
        }
        answer.to_string().replace(id, "ID")
    };
    asked.into_iter().map(|(status, answer)| (status, plain(answer))).collect()
}

#[test]
fn h2_a_foreign_id_and_a_free_one_are_answered_alike() {
    each_store(|place| {
        let gateway = gateway(place, "");
        for tenant in ["a", "b"] {
            gateway.type_in(&["tenants", "create", tenant]).done();
        }
        let (a, b) = (Client::of_tenant(&gateway, "a"), Client::of_tenant(&gateway, "b"));
        // What belongs to no tenant is foreign as well.
        gateway.type_in(&["customers", "create", "nobodys", "--email", "nobody@example.jp"]).done();
        let free = answers(&b, "customers", "free");
        let statuses: Vec<_> = free.iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, [404, 404, 200, 404, 200, 201, 200, 201, 200, 404], "{free:?}");
        assert_eq!(answers(&b, "customers", "nobodys"), free);
        for list in ["customers", "staff", "subjects"] {
            let free = answers(&b, list, &format!("free-{list}"));
            let (taken, gone) = (format!("taken-{list}"), format!("gone-{list}"));
            for id in [&taken, &gone] {
                assert_eq!(a.ask("POST", &format!("/v1/{list}"), &order(list, id, "ann")).0, 201);
            }
            assert_eq!(answers(&b, list, &taken), free, "{list}");
            assert_eq!(a.get(&format!("/v1/{list}/{taken}")).0, 200, "and it is still there");
            assert_eq!(a.delete(&format!("/v1/{list}/{gone}")).0, 200);
            assert_eq!(answers(&b, list, &gone), free, "{list}, deleted");
        }
        gateway.type_in(&["audit", "verify"]).done();
    });
}

#[test]
fn h2_two_tenants_use_the_same_ids_whoever_comes_first() {
    for tenants in [["a", "b"], ["b", "a"]] {
        each_store(|place| {
            let gateway = gateway(place, "");
            for list in ["customers", "staff", "subjects"] {
                same_ids(&gateway, list, tenants);
            }
            lists_and_commands(&gateway);
            for tenant in tenants {
                gateway.type_in(&["tenants", "delete", tenant]).done();
            }
            for list in ["/v1/customers", "/v1/staff", "/v1/subjects"] {
                assert!(Client::operator(&gateway).ids(list).is_empty(), "{list} go with their tenant");
            }
        });
    }
}

/// Each makes, changes and deletes its own.
fn same_ids(gateway: &Gateway, list: &str, tenants: [&str; 2]) {
    let all = Client::operator(gateway);
    let [one, two] = tenants.map(|tenant| {
        gateway.type_in(&["tenants", "create", tenant]).done();
        let name = format!("{tenant}-{list}");
        let order = json!({ "name": name, "scopes": ["operate"], "tenant": tenant });
        let key = all.ask("POST", "/v1/keys", &order).1["key"].as_str().unwrap().to_owned();
        Client { gateway, key }
    });
    let (path, lists) = (format!("/v1/{list}/x"), format!("/v1/{list}"));
    let word = |client: &Client<'_>| {
        let (status, found) = client.get(&path);
        if status == 200 { found["name"].as_str().unwrap_or_default().to_owned() } else { status.to_string() }
    };
    for (client, said) in [(&one, "first"), (&two, "second"), (&one, "first-again")] {
        assert_eq!(client.ask("POST", &lists, &order(list, "x", said)).0, 201);
        let kind = list.strip_suffix('s').unwrap_or(list);
        let rows = json!({ "kind": kind, "rows": [order(list, "x", said), order(list, "y", said)] });
        assert_eq!(client.ask("POST", "/v1/import", &rows).0, 200);
    }
    assert_eq!((word(&one), word(&two)), ("first-again".into(), "second".into()), "{list}");
    assert_eq!(one.ids(&lists), [format!("{}/y", tenants[0]), format!("{}/x", tenants[0])]);
    assert_eq!(one.get(&format!("{lists}?tenant={}", tenants[1])).0, 403);

    // A key of the whole installation says whose.
    let (status, asked) = all.get(&path);
    assert_eq!(status, 409, "{asked}");
    assert!(asked["detail"].as_str().unwrap().contains(": a, b; specify `tenant`"), "{asked}");
    assert_eq!(all.delete(&path).0, 409);
    assert_eq!(all.get(&format!("{path}?tenant={}", tenants[1])).1["name"], "second");
    assert_eq!(all.get(&format!("{path}?tenant=nowhere")).0, 404);

    assert_eq!((two.delete(&path).0, two.delete(&path).0), (200, 404));
    assert_eq!((word(&one), word(&two)), ("first-again".into(), "404".into()), "{list}");
    assert_eq!(all.get(&path).1["name"], "first-again", "the only one that is left");
    assert_eq!(two.ask("POST", &lists, &order(list, "x", "anew")).0, 201);
    assert_eq!((word(&one), word(&two)), ("first-again".into(), "anew".into()), "{list}");
}

/// The same from the command line, where lists say whose each is.
fn lists_and_commands(gateway: &Gateway) {
    let list = |words: &[&str]| {
        let lines = gateway.type_in(&[words, &["--json"]].concat()).done().lines();
        let each = lines.iter().map(|line| {
            format!("{}/{}", line["tenant"].as_str().unwrap_or("-"), line["id"].as_str().unwrap())
        });
        each.collect::<Vec<_>>()
    };
    gateway.type_in(&["customers", "create", "x", "--name", "nobodys"]).done();
    assert_eq!(list(&["customers"]), ["b/y", "b/x", "a/y", "a/x", "-/x"]);
    assert_eq!(list(&["customers", "--limit", "2", "--before", "b/x"]), ["a/y", "a/x"]);
    assert_eq!(list(&["customers", "--tenant", "a", "--before", "y"]), ["a/x"]);
    let all = Client::operator(gateway);
    let (_, page) = all.get("/v1/customers?limit=2");
    assert_eq!(
        all.ids(&format!("/v1/customers?before={}", page["next"].as_str().unwrap())),
        ["a/y", "a/x", "-/x"]
    );
    assert_eq!(all.get("/v1/customers/x").1["name"], "nobodys");
    gateway.type_in(&["customers", "delete", "x"]).done();
    gateway.type_in(&["customers", "delete", "x"]).failed(1).mentions(&["there is no customer x"]);
    gateway
        .type_in(&["customers", "delete", "y"])
        .failed(1)
        .mentions(&["several tenants have a customer y: a, b"]);
    gateway.type_in(&["customers", "delete", "y", "--tenant", "b"]).done();
    assert_eq!(list(&["customers"]), ["b/x", "a/y", "a/x"]);
    gateway.type_in(&["staff", "delete", "y", "--tenant", "a"]).done();
    assert_eq!(list(&["staff"]), ["b/y", "b/x", "a/x"]);
    let deleted = gateway.type_in(&["audit", "--target", "y", "--json"]).done().lines();
    let last = deleted.iter().find(|entry| entry["action"] == "staff.deleted").unwrap();
    assert_eq!(last["tenant"], "a", "the log says whose");
}

/// Somebody paid for a tenant's order, and typed an address at the till.
fn paid(n: &str, tenant: Option<&str>, more: &Value) -> Letter {
    let mut metadata = json!({ "order_id": format!("o_{n}"), "customer_id": "c1" });
    if let Some(tenant) = tenant {
        metadata["tenant_id"] = tenant.into();
    }
    for (name, value) in more.as_object().into_iter().flatten() {
        metadata[name] = value.clone();
    }
    let body = json!({
        "id": format!("evt_{n}"), "object": "event", "type": "charge.succeeded", "livemode": true,
        "created": sekisho::now().seconds(),
        "data": { "object": {
            "object": "charge", "id": format!("ch_{n}"), "payment_intent": format!("pi_{n}"), "status": "succeeded",
            "paid": true, "captured": true, "amount": 5000, "amount_captured": 5000, "currency": "jpy",
            "receipt_email": format!("typed-{n}@example.jp"), "metadata": metadata,
        } },
    });
    Provider::stripe().body(&body.to_string())
}

#[test]
fn g5_no_tenants_key_moves_another_tenants_mail() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
        let gateway = gateway(place, &(mail(&smtp, "spacing = \"1ms\"\nrate = 1000") + RECEIPT));
        let (a, b) = (Client::of_tenant(&gateway, "a"), Client::of_tenant(&gateway, "b"));
        let to = |letter: &Letter| {
            let before = smtp.accepted().len();
            assert_eq!(gateway.send(letter).status, 204);
            wait_until("it is told", || smtp.accepted().len() > before);
            smtp.accepted().last().unwrap().to.concat()
        };
        // B has the id, and A has not: A's customer is known by what was typed at the till.
        let mallory = json!({ "id": "c1", "email": "mallory@evil.example" });
        assert_eq!(b.ask("POST", "/v1/customers", &mallory).0, 201);
        assert_eq!(to(&paid("1", Some("a"), &json!({}))), "typed-1@example.jp");
        // Nor does one of no tenant serve a tenant, whose key could then see the address.
        gateway.type_in(&["customers", "create", "c1", "--email", "nobodys@example.jp"]).done();
        assert_eq!(to(&paid("2", Some("a"), &json!({}))), "typed-2@example.jp");
        assert_eq!(to(&paid("3", None, &json!({}))), "nobodys@example.jp");
        let ann = json!({ "id": "c1", "email": "ann@example.jp" });
        assert_eq!(a.ask("POST", "/v1/customers", &ann).0, 201);
        assert_eq!(to(&paid("4", Some("a"), &json!({}))), "ann@example.jp");
        assert_eq!(to(&paid("5", Some("b"), &json!({}))), "mallory@evil.example");
        // A deleted customer's id is no way in either.
        assert_eq!(a.delete("/v1/customers/c1").0, 200);
        assert_eq!(b.ask("POST", "/v1/customers", &mallory).0, 201);
        assert_eq!(to(&paid("6", Some("a"), &json!({}))), "typed-6@example.jp");
        let seen = b.get("/v1/notices?addresses=full").1.to_string();
        assert!(seen.contains("mallory@") && !seen.contains("typed-1@") && !seen.contains("ann@"), "{seen}");
    });
}

#[test]
fn d7_two_tenants_customers_of_one_id_have_two_balances() {
    each_store(|place| {
        let gateway = gateway(place, "");
        let (a, b) = (Client::of_tenant(&gateway, "a"), Client::of_tenant(&gateway, "b"));
        let all = Client::operator(&gateway);
        let top_up = json!({ "purpose": "balance" });
        let has = |client: &Client<'_>, query: &str| {
            let (status, found) = client.get(&format!("/v1/balances/c1{query}"));
            let balance = found["balances"][0]["balance"].as_i64();
            balance.unwrap_or_else(|| -i64::from(status))
        };
        let send = |letter: &Letter| assert_eq!(gateway.send(letter).status, 204);
        send(&paid("1", Some("a"), &top_up));
        wait_until("it is booked", || has(&a, "") == 5000);
        assert_eq!((has(&b, ""), has(&all, "")), (-404, 5000), "the only one there is");
        // A name in the directory takes nothing from anybody.
        assert_eq!(b.ask("POST", "/v1/customers", &json!({ "id": "c1" })).0, 201);
        assert_eq!((has(&a, ""), b.get("/v1/balances/c1").1["balances"].clone()), (5000, json!([])));
        send(&paid("2", Some("b"), &top_up));
        send(&paid("3", Some("b"), &top_up));
        wait_until("they are booked", || has(&b, "") == 10000);
        assert_eq!((has(&a, ""), has(&all, ""), has(&all, "?tenant=b")), (5000, -409, 10000));
        assert_eq!(has(&a, "?tenant=b"), -403);
        send(&paid("4", None, &top_up));
        wait_until("it is booked", || has(&all, "") == 5000);
        assert_eq!(
            (has(&all, "?tenant=a"), has(&all, "?tenant=b"), has(&all, "?tenant=c")),
            (5000, 10000, -404)
        );

        gateway.type_in(&["balances", "c1", "--tenant", "b"]).done().mentions(&["10000 jpy", "b"]);
        gateway.type_in(&["balances", "c1"]).done().mentions(&["5000 jpy"]);
        let books = all.get("/v1/books").1.to_string();
        for account in ["customer//c1", "customer/a/c1", "customer/b/c1"] {
            assert!(books.contains(account), "{account} in {books}");
        }
        gateway.type_in(&["books", "check"]).done().mentions(&["checked 4 payments, 8 lines and 4 accounts"]);
        // Money stays when its customer is deleted, and a link to one of them is no link to the other.
        assert_eq!(a.ask("POST", "/v1/customers", &json!({ "id": "c1" })).0, 201);
        assert_eq!(a.delete("/v1/customers/c1").0, 200);
        assert_eq!((has(&a, ""), has(&b, "")), (5000, 10000));
        let links = place.sql("SELECT coalesce(tenant_id, '-') || coalesce(customer_id, '-') FROM payments");
        let mut links: Vec<_> = links.lines().collect();
        links.sort_unstable();
        assert_eq!(links, ["-c1", "a-", "bc1", "bc1"], "the views know whose customer was deleted");
        let shown =
            |client: &Client<'_>| client.get("/v1/payments?customer=c1").1["items"][0]["customer"].clone();
        assert_eq!((shown(&a), shown(&b)), (Value::Null, json!("c1")));
        gateway.type_in(&["books", "check"]).done();
    });
}
