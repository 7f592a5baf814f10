use std::time::{Duration, Instant};

use super::*;
use crate::http;

fn deliver(app: &DemoApp, path: &str, message: &str, event: &str) -> io::Result<http::Response> {
    let headers = [("sekisho-message-id", message), ("sekisho-event-id", event), ("sekisho-attempt", "1")];
    http::post(app.address(), path, &headers, b"{}")
}

fn status(app: &DemoApp, message: &str) -> u16 {
    deliver(app, "/hooks", message, "evt_1").unwrap().status
}

#[test]
fn a_request_is_kept_as_it_came() {
    let app = DemoApp::start(Behaviour::Ok).unwrap();
    assert_eq!(deliver(&app, "/hooks?a=1", "msg_1", "evt_1").unwrap().status, 204);
    let received = app.received();
    let one = &received[0];
    assert_eq!((one.message.as_str(), one.event.as_str(), one.attempt), ("msg_1", "evt_1", 1));
    assert_eq!(
        (one.path.as_str(), &one.body[..], one.answered),
        ("/hooks?a=1", &b"{}"[..], AnsweredRequest::Status(204))
    );
    assert!(one.headers.contains(&("connection".into(), "close".into())));
    assert_eq!(app.counts(), AppCounts { seen: 1, processed: 1, messages: 1 });
    assert_eq!(app.url(), format!("http://{}", app.address()));
}

#[test]
fn it_answers_as_told_and_changes_its_mind() {
    let reply = Reply::status(489).with_header("Upstash-NonRetryable-Error", "true").with_body("never");
    let app = DemoApp::start(Behaviour::Answer(reply)).unwrap();
    let response = deliver(&app, "/", "msg_1", "evt_1").unwrap();
    assert_eq!((response.status, response.text().as_str()), (489, "never"));
    assert_eq!(response.header("upstash-nonretryable-error"), Some("true"));
    assert_eq!(app.ledger().processed("msg_1"), 0);
    app.set(Behaviour::Ok);
    assert_eq!(status(&app, "msg_1"), 204);
    assert_eq!(app.ledger().processed("msg_1"), 1);
}

#[test]
fn each_message_fails_as_often_as_told() {
    let app = DemoApp::start("fail:2:503;retry-after=1".parse().unwrap()).unwrap();
    for message in ["msg_1", "msg_2"] {
        assert_eq!([(); 3].map(|()| status(&app, message)), [503, 503, 204]);
    }
}

#[test]
fn a_dropped_request_was_processed_and_a_silent_one_was_not() {
    let app = DemoApp::start(Behaviour::Drop).unwrap();
    assert!(deliver(&app, "/", "msg_1", "evt_1").is_err());
    assert_eq!(app.received()[0].answered, AnsweredRequest::Dropped);
    assert_eq!(app.ledger().processed("msg_1"), 1);

    app.set(Behaviour::Silent);
    let mut stream = std::net::TcpStream::connect(app.address()).unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nsekisho-message-id: msg_2\r\n\r\n").unwrap();
    let started = Instant::now();
    while app.received().len() < 2 {
        assert!(started.elapsed() < http::TIMEOUT);
        std::thread::yield_now();
    }
    assert_eq!(app.ledger().processed("msg_2"), 0);
    // Dropping the application ends what hangs.
    drop(app);
    assert_eq!(io::Read::read(&mut stream, &mut [0]).unwrap_or(0), 0);
}

#[test]
fn slow_answers_arrive_whole_and_late() {
    let app = DemoApp::start("slow:1".parse().unwrap()).unwrap();
    let started = Instant::now();
    assert_eq!(status(&app, "msg_1"), 200);
    assert!(started.elapsed() > Duration::from_millis(30));
    app.set("delay:40:status:500".parse().unwrap());
    let started = Instant::now();
    assert_eq!(status(&app, "msg_1"), 500);
    assert!(started.elapsed() >= Duration::from_millis(40));
}

#[test]
fn after_a_crash_it_comes_back_on_its_port_with_its_ledger() {
    let mut app = DemoApp::start(Behaviour::Ok).unwrap();
    assert_eq!(status(&app, "msg_1"), 204);
    let address = app.address();
    app.crash();
    assert!(deliver(&app, "/", "msg_2", "evt_1").is_err());
    app.start_again().unwrap();
    assert_eq!((app.address(), status(&app, "msg_2")), (address, 204));
    assert_eq!(app.counts().messages, 2);
}

#[test]
fn a_mix_follows_its_seed_and_paths_have_their_own_ways() {
    let mix: Behaviour = "mix:7:20=drop,30=status:500".parse().unwrap();
    let count = |ending: AppEnding| {
        let acts = (0..1_000).map(|n| mix.decide("/", &format!("msg_{n}"), 0));
        acts.filter(|act| act.ending == ending).count()
    };
    let (dropped, failed) = (count(AppEnding::Drop), count(AppEnding::Reply(Reply::status(500))));
    assert!((150..250).contains(&dropped) && (250..350).contains(&failed), "{dropped} {failed}");
    assert_eq!(count(AppEnding::Drop), dropped);

    let paths = Behaviour::Paths(vec![("/a".into(), Behaviour::status(500))], Box::new(Behaviour::Ok));
    let app = DemoApp::start(paths).unwrap();
    let status = |path| deliver(&app, path, "msg_1", "evt_1").unwrap().status;
    assert_eq!((status("/a?q=1"), status("/b")), (500, 204));
}

#[test]
fn another_process_reads_of_doubled_effects_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let app =
        DemoApp::start_with(Settings { keep: Keep::Ids, ledger: Some(path.clone()), ..Settings::default() });
    let app = app.unwrap();
    for (at, message, event) in [
        ("/a", "msg_1", "evt_1"),
        ("/a", "msg_1", "evt_1"),
        ("/b", "msg_2", "evt_1"),
        ("/a", "msg_3", "evt_2"),
        ("/a", "msg_4", "evt_2"),
        ("/a", "", ""),
        ("/a", "msg_5", ""),
    ] {
        deliver(&app, at, message, event).unwrap();
        let read = Ledger::read(&path).unwrap();
        assert_eq!((read.counts(), read.doubled()), (app.counts(), app.ledger().doubled()));
    }
    app.set(Behaviour::status(500));
    assert_eq!(status(&app, "msg_9"), 500);
    let read = Ledger::read(&path).unwrap();
    assert_eq!(read.doubled(), [("evt_2", "/a", vec!["msg_3", "msg_4"])]);
    assert_eq!((read.processed("msg_1"), read.processed("msg_9")), (2, 0));
    assert_eq!(read.effects().collect::<Vec<_>>(), [("evt_1", "/a"), ("evt_1", "/b"), ("evt_2", "/a")]);
    assert!(app.received().iter().all(|one| one.body.is_empty() && one.headers.is_empty()));
}

#[test]
fn behaviours_that_make_no_sense_are_refused() {
    for text in
        ["", "okay", "status:", "status:abc", "fail:3", "delay:x:ok", "mix:1", "mix:1:300=ok", "mix:1:5"]
    {
        assert!(text.parse::<Behaviour>().is_err(), "{text}");
    }
}
