//! G4: every morning each member of staff hears once of what is due, however often the run is killed and started again.

use std::collections::BTreeMap;
use std::time::Duration;

use sekisho_lab::rng::Rng;
use sekisho_lab::smtp::{Point, Smtp, SmtpBehaviour};

use super::notices::{mail, statuses};
use crate::support::{Gateway, Place, each_store, seed, stripe_source, wait_until};

const DATE: &str = "2026-11-16";

/// How many members of staff the great run has: few, or as many as `SEKISHO_REMINDERS` says.
fn crowd() -> usize {
    std::env::var("SEKISHO_REMINDERS").ok().and_then(|text| text.parse().ok()).unwrap_or(600)
}

fn config(smtp: &Smtp, more: &str) -> String {
    let house = "[notifications]\nreminders = \"mail\"\ndashboard_url = \"https://app.example.jp/offices/{tenant}\"\n";
    house.to_owned() + &stripe_source("") + &mail(smtp, more)
}

/// Writes a sheet into the gateway's folder and imports it.
fn import(gateway: &Gateway, kind: &str, rows: &str) {
    let file = gateway.folder().join(format!("{kind}.csv"));
    std::fs::write(&file, rows).unwrap();
    gateway.type_in(&[kind, "import", file.to_str().unwrap()]).done();
}

/// An office with one subject that is due for whoever looks a month ahead.
fn furnish(gateway: &Gateway, offices: &[&str]) {
    let tenants = offices.iter().map(|id| format!("{id},事業所 {id},ja,Asia/Tokyo\n"));
    import(gateway, "tenants", &format!("id,name,language,time_zone\n{}", tenants.collect::<String>()));
    let subjects = offices.iter().map(|id| format!("{id}-1,{id},佐藤 一郎,2026-11-20,2026-12-01\n"));
    import(
        gateway,
        "subjects",
        &format!("id,tenant,name,renewal_due_on,assessment_due_on\n{}", subjects.collect::<String>()),
    );
}

fn run(gateway: &Gateway) {
    // Whatever became of them: the summary says it, and so do we below.
    gateway.type_in(&["reminders", "run", "--date", DATE, "--no-wait"]);
}

#[test]
fn g4_each_member_of_staff_gets_one_mail_in_the_own_language_and_the_record_says_why_another_got_none() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
        let gateway = Gateway::with(place, &config(&smtp, "spacing = \"1ms\"\nrate = 1000"));
        furnish(&gateway, &["aozora", "hikari"]);
        import(
            &gateway,
            "staff",
            "id,tenant,family_name,given_name,email,language,notifications,threshold_days\n\
             s1,aozora,山田,花子,hanako@example.jp,,on,30\n\
             s2,aozora,Smith,John,john@example.com,en,on,10\n\
             s3,aozora,鈴木,次郎,jiro@example.jp,ja,off,30\n\
             s4,hikari,高橋,三郎,saburo@example.jp,ja,on,2\n",
        );
        let dry = gateway.type_in(&["reminders", "run", "--date", DATE, "--dry-run"]).done();
        assert!(dry.all().contains("h***@example.jp") && !dry.all().contains("hanako@"), "{}", dry.all());
        assert!(statuses(place).is_empty(), "a dry run writes nothing");

        gateway.type_in(&["reminders", "run", "--date", DATE]).done().mentions(&["SENT", "OFF"]);
        gateway.type_in(&["reminders", "run", "--date", DATE]).done();
        assert_eq!(statuses(place), BTreeMap::from([("sent".into(), 2), ("off".into(), 1)]));
        let mails = smtp.accepted();
        let mut to: Vec<_> = mails.iter().map(|mail| mail.to.concat()).collect();
        to.sort();
        assert_eq!(
            to,
            ["hanako@example.jp", "john@example.com"],
            "nothing is due for whoever looks two days ahead"
        );
        let of = |address: &str| mails.iter().find(|mail| mail.to == [address]).unwrap();
        let hanako = of("hanako@example.jp").part("text/plain").unwrap();
        for word in ["山田 花子", "事業所 aozora", "佐藤 一郎", "https://app.example.jp/offices/aozora"]
        {
            assert!(hanako.contains(word), "{word} in\n{hanako}");
        }
        let john = of("john@example.com").part("text/plain").unwrap();
        assert!(john.contains("Smith John") && !john.contains("様"), "{john}");
        let audit = gateway.type_in(&["audit", "list", "--json"]).done();
        let sent: Vec<_> = audit
            .lines()
            .into_iter()
            .filter(|entry| entry["action"] == "deadline_notification_sent")
            .collect();
        assert_eq!(sent.len(), 2);
        let details: Vec<_> = sent.iter().map(|entry| &entry["details"]).collect();
        for key in
            ["recipient_email", "staff_name", "office_name", "renewal_alert_count", "assessment_alert_count"]
        {
            assert!(details.iter().all(|details| !details[key].is_null()), "{key} in {details:?}");
        }
        assert!(details.iter().any(|details| details["email_threshold_days"] == 10), "{details:?}");
    });
}

#[test]
fn g4_a_great_run_killed_three_times_reaches_everyone_once_and_keeps_to_the_rate() {
    each_store(|place| great_run(place, crowd()));
}

fn great_run(place: &Place, crowd: usize) {
    const PER_SECOND: usize = 250;
    let mut rng = Rng::new(seed("reminders"));
    let busy =
        SmtpBehaviour::First(1, Box::new(SmtpBehaviour::say(Point::Recipient, "451 4.7.1 greylisted")));
    let wrong = SmtpBehaviour::say(Point::Recipient, "550 5.1.1 no such user");
    let some = vec![("busy".to_owned(), busy), ("wrong".to_owned(), wrong)];
    let smtp = Smtp::start(SmtpBehaviour::To(some, Box::new(SmtpBehaviour::Accept))).unwrap();
    let more = format!("spacing = \"1ms\"\nrate = {PER_SECOND}\ndaily = 1000000");
    let mut gateway = Gateway::with(place, &config(&smtp, &more));
    furnish(&gateway, &["o0", "o1", "o2", "o3"]);
    // One in ten is greylisted at first, one in a hundred does not exist.
    let name = |n: usize| {
        if n % 100 == 7 {
            "wrong"
        } else if n % 10 == 3 {
            "busy"
        } else {
            "well"
        }
    };
    let rows = (0..crowd).map(|n| format!("s{n},o{},山田,花子,{}{n}@example.jp\n", n % 4, name(n)));
    import(
        &gateway,
        "staff",
        &format!("id,tenant,family_name,given_name,email\n{}", rows.collect::<String>()),
    );

    run(&gateway);
    for kill in 1..=3 {
        let goal = crowd * kill / 4;
        wait_while_it_goes_on(&smtp, goal);
        std::thread::sleep(Duration::from_millis(rng.between(0, 200)));
        gateway.server.kill9();
        gateway.server.restart().unwrap();
        run(&gateway);
    }
    let is_over = || {
        let all = statuses(place);
        let over =
            ["sent", "failed", "uncertain"].iter().filter_map(|status| all.get(*status)).sum::<usize>();
        over == crowd
    };
    wait_while_it_goes_on(&smtp, crowd * 9 / 10);
    wait_until("everyone is reached or listed", is_over);

    let all = statuses(place);
    let uncertain = all.get("uncertain").copied().unwrap_or_default();
    let mut got = BTreeMap::<String, usize>::new();
    smtp.accepted().iter().for_each(|mail| *got.entry(mail.to.concat()).or_default() += 1);
    eprintln!(
        "{crowd} reminders, 3 kills: {all:?}; the server has {} of {} people",
        smtp.accepted().len(),
        got.len()
    );
    assert!(got.values().all(|count| *count == 1), "somebody got it twice");
    let (sent, wrong) = (all["sent"], (0..crowd).filter(|n| name(*n) == "wrong").count());
    assert_eq!(all.get("failed").copied().unwrap_or_default() + uncertain_of(place, "wrong"), wrong);
    // Whoever is in doubt may have it or not; everybody else who exists has it.
    assert!(got.len() >= sent && got.len() <= sent + uncertain, "{} have it, {all:?}", got.len());
    assert!(uncertain <= 3 * 5, "only what was under way at a kill is in doubt: {all:?}");
    assert!(smtp.most_at_once() <= 5);

    assert!(busiest_second(&smtp) <= PER_SECOND + 5, "{} mails in one second", busiest_second(&smtp));
}

#[test]
fn g2_two_nodes_keep_to_one_rate_and_tell_everyone_once() {
    const PER_SECOND: usize = 50;
    const CROWD: usize = 200;
    let place = Place::postgres();
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    let config = config(&smtp, &format!("spacing = \"1ms\"\nrate = {PER_SECOND}"));
    let nodes = [Gateway::with(&place, &config), Gateway::with(&place, &config)];
    furnish(&nodes[0], &["o0", "o1"]);
    let rows = (0..CROWD).map(|n| format!("s{n},o{},山田,花子,a{n}@example.jp\n", n % 2));
    import(
        &nodes[0],
        "staff",
        &format!("id,tenant,family_name,given_name,email\n{}", rows.collect::<String>()),
    );
    nodes.iter().for_each(run);
    wait_until("everyone is told", || statuses(&place).get("sent") == Some(&CROWD));
    assert_eq!(smtp.accepted().len(), CROWD);
    for node in &nodes {
        assert!(node.metric("sekisho_notices_total", &["mail", "sent"]) > 0, "both took part");
    }
    assert!(busiest_second(&smtp) <= PER_SECOND + 5, "{} mails in one second", busiest_second(&smtp));
}

#[test]
fn g4_the_clock_starts_a_days_run_by_itself() {
    const QUARTER_MS: i64 = 15 * 60_000;
    each_store(|place| {
        // The quarter of an hour that is running, on a clock that shows no midnight near it.
        let quarter = sekisho::now().ms().div_euclid(QUARTER_MS) * QUARTER_MS;
        let minutes_utc = quarter.div_euclid(60_000).rem_euclid(24 * 60);
        let (zone, minutes) = match minutes_utc {
            120..1320 => ("UTC", minutes_utc),
            _ => ("Asia/Tokyo", (minutes_utc + 9 * 60).rem_euclid(24 * 60)),
        };
        let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
        let at = format!("remind_at = \"{:02}:{:02}\"\n", minutes / 60, minutes % 60);
        let config = config(&smtp, "spacing = \"1ms\"\nrate = 1000");
        let mut gateway = Gateway::with(place, &config.replace("dashboard_url", &(at + "dashboard_url")));
        import(
            &gateway,
            "tenants",
            &format!("id,name,time_zone\naozora,青空事業所,{zone}\nelse,Else,Pacific/Kiritimati\n"),
        );
        let subjects =
            "id,tenant,name,renewal_due_on\nx,aozora,佐藤 一郎,2020-01-01\nx,else,Sato,2020-01-01\n";
        import(&gateway, "subjects", subjects);
        let staff =
            "id,tenant,family_name,email\ns,aozora,山田,hanako@example.jp\ns,else,Else,else@example.com\n";
        import(&gateway, "staff", staff);
        // The timer stands for the next quarter; put for the one that is running, it is due the moment somebody is there.
        let timer = "payload = '\"remind\"'";
        let planned = || place.sql(&format!("SELECT count(*) FROM job WHERE {timer}"));
        wait_until("the timer is planned", || planned() != "0");
        gateway.server.terminate().unwrap();
        place.sql(&format!("UPDATE job SET due_at = {quarter} WHERE {timer}"));
        gateway.server.restart().unwrap();
        wait_until("the run is over", || statuses(place).get("sent") == Some(&1));

        let mails = smtp.accepted();
        assert_eq!(mails.iter().map(|mail| mail.to.concat()).collect::<Vec<_>>(), ["hanako@example.jp"]);
        assert!(mails[0].part("text/plain").unwrap().contains("佐藤 一郎"), "{:?}", mails[0].parts);
        let by_hand = gateway.type_in(&["audit", "list", "--action", "reminders.run", "--json"]).done();
        assert!(by_hand.lines().is_empty(), "nobody ran it by hand: {}", by_hand.stdout);
        // Whoever runs the day by hand finds it done.
        let again = gateway.type_in(&["reminders", "run", "--tenant", "aozora"]).done();
        again.mentions(&["1 reminder", "0 new"]);
        assert_eq!(smtp.accepted().len(), 1);
    });
}

/// Waits until the server has so many, as long as there is some progress.
fn wait_while_it_goes_on(smtp: &Smtp, goal: usize) {
    while smtp.accepted().len() < goal {
        let before = smtp.accepted().len();
        wait_until("some more are sent", || smtp.accepted().len() > before);
    }
}

/// The most mails that were taken within one second.
fn busiest_second(smtp: &Smtp) -> usize {
    let mut times: Vec<_> = smtp.accepted().iter().map(|mail| mail.at_ms).collect();
    times.sort_unstable();
    let within = |n: usize| times[n..].partition_point(|later| *later < times[n] + 1_000);
    (0..times.len()).map(within).max().unwrap_or_default()
}

/// How many notices in doubt go to addresses that begin so.
fn uncertain_of(place: &Place, beginning: &str) -> usize {
    let query = format!(
        "SELECT count(*) FROM state WHERE kind = 'notice' AND status = 'uncertain' AND customer LIKE '{beginning}%'"
    );
    place.sql(&query).parse().unwrap()
}
