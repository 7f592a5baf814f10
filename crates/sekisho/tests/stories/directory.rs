//! G4, G5, H2: who can be told what, entered one by one and from tables, beside a running server and without one. A table
//! with one wrong row enters nobody; the same table again changes nothing; no list, log or audit entry shows an address.

use serde_json::{Value, json};

use crate::support::{Gateway, Place, Said, each_store, stripe_source};

/// Whatever prints one of these has leaked it: gateways are searched for it.
const ADDRESS: &str = "canary-hanako@example.jp";
const WRITE: &str = "canary-write-key-0123456789";

const TENANTS: &str =
    "id,name,language,time_zone\noffice,大阪事務所,ja,Asia/Tokyo\nberlin,Berlin,en,Europe/Berlin\n";

fn gateway(place: &Place) -> Gateway {
    let key = "[[key]]\nname = \"app\"\nsecret = \"env:APP\"\nscopes = [\"write\"]\n";
    let mut gateway = Gateway::with_env(place, &(stripe_source("") + key), &[("APP", WRITE)]);
    gateway.canaries.push("canary-hanako".into());
    gateway
}

fn stop(gateway: &mut Gateway) {
    assert!(gateway.server.terminate().unwrap().success());
}

/// Saves a table and types `LIST import` with it.
fn import(gateway: &Gateway, list: &str, table: impl AsRef<[u8]>, more: &[&str]) -> Said {
    let file = format!("{list}.csv");
    std::fs::write(gateway.folder().join(&file), table).unwrap();
    gateway.type_in(&[&[list, "import", &file], more].concat())
}

fn staff(rows: &[&str]) -> String {
    let header = "id,tenant,family_name,given_name,email,language,notifications,threshold_days";
    format!("{header}\n{}\n", rows.join("\n"))
}

fn audited(place: &Place, action: &str) -> String {
    place.sql(&format!("SELECT count(*) FROM audit WHERE action = '{action}'"))
}

fn enter_all(gateway: &Gateway, place: &Place) {
    import(gateway, "tenants", TENANTS, &[]).done().mentions(&["2 new, 0 changed, 0 unchanged"]);
    let hanako = format!("s1,office,佐藤,花子,{ADDRESS},,はい,14");
    let rows =
        [&*hanako, "s2,office,山田,太郎,taro@example.jp,ja,いいえ,", "s3,berlin,,,max@example.de,en,on,0"];
    import(gateway, "staff", staff(&rows), &["--dry-run"]).done().mentions(&["would be: 3 new"]);
    gateway.type_in(&["staff"]).done().mentions(&["no staff"]);
    import(gateway, "staff", staff(&rows), &[]).done().mentions(&["3 new, 0 changed, 0 unchanged"]);
    import(gateway, "staff", "\u{feff}".to_owned() + &staff(&rows), &[])
        .done()
        .mentions(&["0 new, 0 changed, 3 unchanged"]);
    assert_eq!((audited(place, "staff.created"), audited(place, "staff.changed")), ("3".into(), "0".into()));
    let rows = [&*hanako, "s2,office,山田,太郎,taro@example.jp,ja,on,60", "s4,berlin,,,eva@example.de,,,"];
    let said = import(gateway, "staff", staff(&rows), &["--json"]).done();
    assert_eq!(said.lines(), [json!({ "new": 1, "changed": 1, "unchanged": 1, "dry_run": false })]);
    assert_eq!((audited(place, "staff.created"), audited(place, "staff.changed")), ("4".into(), "1".into()));

    let list = gateway.type_in(&["staff", "list", "--tenant", "office"]).done();
    list.mentions(&["佐藤 花子", "c***@example.jp", "山田 太郎", "60"]);
    let max = &gateway.type_in(&["staff", "--tenant", "berlin", "--full", "--json"]).done().lines()[1];
    assert_eq!((&max["email"], &max["threshold_days"]), (&json!("max@example.de"), &json!(0)));

    let subjects = "id,tenant,name,renewal_due_on,assessment_due_on\nx1,office,鈴木,2026/4/1,\nx2,office,田中,,2026-05-31\n";
    import(gateway, "subjects", subjects, &[]).done().mentions(&["2 new"]);
    gateway.type_in(&["subjects"]).done().mentions(&["鈴木", "2026-04-01", "2026-05-31"]);
    let customers = "id,tenant,name,email,language\nc1,office,顧客,kyaku@example.jp,ja\nc2,,,,\n";
    import(gateway, "customers", customers, &[]).done().mentions(&["2 new"]);
    gateway.type_in(&["customers"]).done().mentions(&["k***@example.jp", "c2"]);
}

fn one_by_one(gateway: &Gateway) {
    let zone = ["tenants", "create", "kyoto", "--language", "ja", "--time-zone", "Asia/Tokyo"];
    gateway.type_in(&zone).done().mentions(&["kyoto"]);
    gateway
        .type_in(&["tenants", "create", "kyoto", "--time-zone", "Asia/Kyoto"])
        .failed(2)
        .mentions(&["time_zone: \"Asia/Kyoto\" is no time zone"]);
    gateway.type_in(&["tenants"]).done().mentions(&["Asia/Tokyo", "Europe/Berlin"]);
    let who = ["--email", "jiro@example.jp", "--family-name", "次郎", "--no-notifications"];
    let create = |tenant: &str| {
        gateway.type_in(&[&["staff", "create", "s 9/日", "--tenant", tenant], &who[..]].concat())
    };
    create("kyoto").failed(2).mentions(&["id: expected an id without /"]);
    let create = |tenant: &str| {
        gateway.type_in(&[&["staff", "create", "s 9%日", "--tenant", tenant, "--json"], &who[..]].concat())
    };
    create("nara").failed(2).mentions(&["tenant: there is no tenant nara; create it first"]);
    let made = &create("kyoto").done().lines()[0];
    assert_eq!((&made["email"], &made["notifications"]), (&json!("j***@example.jp"), &json!(false)));
    // The same id in another tenant is another person.
    create("office").done();
    let delete = |more: &[&str]| gateway.type_in(&[&["staff", "delete", "s 9%日"], more].concat());
    delete(&[])
        .failed(1)
        .mentions(&["several tenants have a staff member s 9%日: kyoto, office; specify `tenant`"]);
    delete(&["--tenant", "berlin"]).failed(1).mentions(&["there is no staff member s 9%日"]);
    delete(&["--tenant", "office"]).done();
    gateway.type_in(&["staff", "delete", "s 9%日"]).done().mentions(&["Deleted staff member s 9%日"]);
    gateway.type_in(&["staff", "delete", "s 9%日"]).failed(1).mentions(&["there is no staff member s 9%日"]);
    gateway.type_in(&["staff", "--tenant", "kyoto"]).done().mentions(&["no staff"]);
    let late = ["subjects", "create", "x9", "--tenant", "kyoto", "--name", "九", "--renewal-due-on"];
    gateway
        .type_in(&[&late[..], &["2026-02-30"]].concat())
        .failed(2)
        .mentions(&["renewal_due_on", "YYYY-MM-DD"]);
    gateway.type_in(&[&late[..], &["2026-02-28"]].concat()).done();
    gateway.type_in(&["subjects", "delete", "x9"]).done();
    let customer = ["customers", "create", "c9", "--email", "nine@example.jp", "--language", "en"];
    gateway.type_in(&customer).done().mentions(&["c9"]);
}

/// What the database keeps of a deleted person.
fn nothing_is_left(place: &Place) {
    let stone = place.sql("SELECT facts, tenant FROM state WHERE kind = 'staff' AND status = 'deleted'");
    let is_bare = |stone: &str| stone.starts_with("{\"deleted\":") && stone.trim().ends_with('|');
    assert!(stone.lines().all(is_bare) && stone.lines().count() == 2 && !stone.contains("canary"), "{stone}");
    let audit = place.sql("SELECT details FROM audit WHERE action LIKE 'staff.%'");
    assert!(audit.contains("c***@example.jp") && !audit.contains("canary"), "{audit}");
    assert_eq!(audited(place, "staff.deleted"), "2");
}

#[test]
fn h2_a_directory_is_entered_beside_a_server() {
    each_store(|place| {
        let gateway = gateway(place);
        enter_all(&gateway, place);
        one_by_one(&gateway);
        nothing_is_left(place);
        gateway.type_in(&["audit", "verify"]).done();
    });
}

#[test]
fn h2_a_directory_is_entered_with_no_server() {
    each_store(|place| {
        let mut gateway = gateway(place);
        stop(&mut gateway);
        enter_all(&gateway, place);
        one_by_one(&gateway);
        nothing_is_left(place);
        gateway.type_in(&["audit", "verify"]).done();
    });
}

/// One row after the other is wrong in its own way, and the good ones beside it are not entered.
fn nobody_is_entered(gateway: &Gateway, place: &Place) {
    import(gateway, "tenants", TENANTS, &[]).done();
    let rows = [
        "s1,office,,,good@example.jp,,,",
        "s2,office,,,no address,,,",
        "s3,office,,,t@example.jp,fr,,",
        "s1,office,,,twice@example.jp,,,",
        "s4,nowhere,,,t@example.jp,,,",
        "s5,office,,,t@example.jp,,perhaps,400",
        "s6,office",
    ];
    let said = import(gateway, "staff", staff(&rows), &[]).failed(2);
    let said = said.mentions(&[
        "staff.csv:3: email: is no mail address; expected one such as",
        "staff.csv:4: language: \"fr\" is no language that is spoken here; expected ja or en",
        "staff.csv:5: id: s1 stands in line 2, too; expected each id once",
        "staff.csv:6: tenant: there is no tenant nowhere; create it first",
        "staff.csv:7: notifications: \"perhaps\" is neither; expected true, false",
        "staff.csv:8: row: has 2 cells; expected 8",
        "staff.csv has 6 problems; nothing was imported",
    ]);
    let lines: Vec<_> = said.stderr.lines().filter(|line| line.starts_with("staff.csv:")).collect();
    assert!(lines.is_sorted() && lines.len() == 6, "{lines:?}");
    let said = import(gateway, "staff", staff(&rows[..2]), &["--json"]).failed(2);
    assert_eq!(said.lines()[0]["problems"][0]["line"], 3);

    import(gateway, "staff", "id,tenant,e-mail\ns1,office,t@example.jp\n", &[]).failed(2).mentions(&[
        "staff.csv:1: e-mail: there is no such column; did you mean email? expected only id, tenant",
        "staff.csv:1: email: the column is missing",
    ]);
    import(gateway, "tenants", "id,time_zone\nnew,UTC\nedo,Asia/Edo\n", &[])
        .failed(2)
        .mentions(&["tenants.csv:3: time_zone: \"Asia/Edo\" is no time zone; expected a name such as"]);
    let subjects = "id,tenant,name,renewal_due_on\nx1,office,X,2026-02-28\nx2,office,Y,2026-02-30\n";
    import(gateway, "subjects", subjects, &[])
        .failed(2)
        .mentions(&["subjects.csv:3: renewal_due_on: \"2026-02-30\" is no day of the calendar"]);
    let shift_jis = b"id,name\nnew,\x91\xe5\x8d\xe3\n";
    import(gateway, "tenants", shift_jis, &[]).failed(2).mentions(&["Shift_JIS", "CSV UTF-8"]);
    import(gateway, "customers", "id,tenant\nc1,office\n", &[]).done();
    import(gateway, "customers", "id,tenant\nc2,office\nc1,berlin\nc1,office\nc1,berlin\n", &[])
        .failed(2)
        .mentions(&["customers.csv:5: id: c1 stands in line 3, too; expected each id once"]);
    gateway.type_in(&["staff", "import", "none.csv"]).failed(1).mentions(&["can't read none.csv"]);

    let kinds = "('tenant', 'customer', 'staff', 'subject')";
    let kept = place
        .sql(&format!("SELECT kind, count(*) FROM state WHERE kind IN {kinds} GROUP BY kind ORDER BY kind"));
    let kept: Vec<_> = kept.lines().collect();
    assert_eq!(kept, ["customer|1", "tenant|2"], "nothing is half imported");
    assert_eq!(place.sql("SELECT count(*) FROM audit WHERE action LIKE '%.created'").trim(), "3");
}

#[test]
fn h2_a_table_with_a_wrong_row_enters_nobody() {
    each_store(|place| {
        let mut gateway = gateway(place);
        nobody_is_entered(&gateway, place);
        stop(&mut gateway);
        let said = import(&gateway, "staff", staff(&["s1,nowhere,,,t@example.jp,,,"]), &[]).failed(2);
        said.mentions(&["staff.csv:2: tenant: there is no tenant nowhere; create it first"]);
    });
}

#[test]
fn h2_a_long_table_goes_in_parts_and_problems_in_it_are_told_with_their_lines() {
    let place = Place::sqlite();
    let gateway = gateway(&place);
    import(&gateway, "tenants", TENANTS, &[]).done();
    let row = |n: usize| match n {
        1_700 => format!("x{n},nowhere,X"),
        _ => format!("x{n},office,X"),
    };
    let table = |rows: std::ops::Range<usize>| {
        format!("id,tenant,name\n{}\n", rows.map(row).collect::<Vec<_>>().join("\n"))
    };
    import(&gateway, "subjects", table(0..2_000), &[])
        .failed(2)
        .mentions(&["subjects.csv:1702: tenant: there is no tenant nowhere", "has 1 problem;"]);
    import(&gateway, "subjects", table(0..1_200), &[]).done().mentions(&["1200 new, 0 changed, 0 unchanged"]);
    import(&gateway, "subjects", table(0..1_300), &[])
        .done()
        .mentions(&["100 new, 0 changed, 1200 unchanged"]);
    let wrong: Vec<_> = (0..250).map(|n| format!("y{n},nowhere,Y")).collect();
    let said = import(&gateway, "subjects", format!("id,tenant,name\n{}\n", wrong.join("\n")), &[]).failed(2);
    assert_eq!(said.stderr.lines().filter(|line| line.contains("create it first")).count(), 100);
}

#[test]
fn g5_an_app_enters_staff_and_sees_addresses_only_when_it_asks() {
    each_store(|place| {
        let gateway = gateway(place);
        let ask = |method: &str, path: &str, order: &Value| {
            let bearer = format!("Bearer {WRITE}");
            let headers = [("authorization", bearer.as_str())];
            let body = order.to_string();
            let body = if order.is_null() { "" } else { &*body };
            let answer =
                sekisho_lab::http::request(gateway.address(), method, path, &headers, body.as_bytes());
            let answer = answer.unwrap();
            (answer.status, serde_json::from_slice::<Value>(&answer.body).unwrap())
        };
        let none = Value::Null;
        let who = json!({ "id": "s1", "tenant": "office", "family_name": "佐藤", "email": ADDRESS });
        let (status, refused) = ask("POST", "/v1/staff", &who);
        assert_eq!((status, &refused["errors"][0]["field"]), (422, &json!("tenant")));
        let office = json!({ "id": "office", "language": "ja", "time_zone": "Asia/Tokyo" });
        assert_eq!(ask("POST", "/v1/tenants", &office).0, 201);
        let (status, made) = ask("POST", "/v1/staff", &who);
        assert_eq!((status, &made["email"]), (201, &json!("c***@example.jp")), "{made}");
        assert_eq!(ask("GET", "/v1/staff?tenant=office", &none).1["items"][0]["email"], "c***@example.jp");
        assert_eq!(ask("GET", "/v1/staff/s1?addresses=full", &none).1["email"], ADDRESS);
        assert_eq!(ask("DELETE", "/v1/staff/s1", &none).0, 200);
        assert_eq!(ask("GET", "/v1/staff/s1", &none).0, 404);
        let subject =
            json!({ "id": "x", "tenant": "office", "name": "X", "assessment_due_on": "2026-02-29" });
        let (status, refused) = ask("POST", "/v1/subjects", &subject);
        assert_eq!((status, &refused["errors"][0]["field"]), (422, &json!("assessment_due_on")));
        assert!(!place.sql("SELECT details FROM audit").contains("canary"));
    });
}
