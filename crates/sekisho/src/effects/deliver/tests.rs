use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Far away: no test waits for it.
const LONG: Duration = Duration::from_secs(20);
/// What a stalling server costs a test.
const SHORT: Duration = Duration::from_millis(200);
const BODY: &str = "{\"paid\":true}";
const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// What the server does once it has read a request.
#[derive(Clone, Copy)]
enum Step {
    Say(&'static str),
    Fill(usize),
    Endless,
    Stall,
    Reset,
    Close,
    /// Reads the next request and goes on.
    Next,
}
use Step::{Close, Endless, Fill, Next, Reset, Say, Stall};

struct Server {
    port: u16,
    /// One text per connection: all that came in on it.
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Follows the same steps on each connection, then closes it.
    async fn start(steps: &'static [Step]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let hearing = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let n = hearing.lock().unwrap().len();
                hearing.lock().unwrap().push(String::new());
                let hearing = Arc::clone(&hearing);
                tokio::spawn(async move { follow(stream, steps, &hearing, n).await });
            }
        });
        Self { port, heard }
    }

    fn client(&self, timeout: Duration) -> Client {
        Client::new(&format!("http://127.0.0.1:{}/in?key=canary", self.port), timeout, true).unwrap()
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

async fn follow(mut stream: TcpStream, steps: &[Step], heard: &Mutex<Vec<String>>, n: usize) {
    hear(&mut stream, heard, n).await;
    for step in steps {
        // The client may have left already.
        let _ = match step {
            Say(text) => stream.write_all(text.as_bytes()).await,
            Fill(bytes) => stream.write_all(&vec![b'x'; *bytes]).await,
            Endless => loop {
                if let Err(error) = stream.write_all(&[b'x'; 4096]).await {
                    break Err(error);
                }
            },
            Stall => std::future::pending().await,
            Reset => {
                // Closing with a linger of zero resets.
                stream.set_zero_linger().unwrap();
                return;
            }
            Close => return,
            Next => {
                hear(&mut stream, heard, n).await;
                Ok(())
            }
        };
    }
}

/// Reads one request with [`BODY`], or whatever comes of something else.
async fn hear(stream: &mut TcpStream, heard: &Mutex<Vec<String>>, n: usize) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(BODY.as_bytes()) && bytes.first() != Some(&0x16) {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            break;
        }
    }
    heard.lock().unwrap()[n].push_str(&String::from_utf8_lossy(&bytes));
}

async fn post(client: &Client) -> Result<Answer, Fault> {
    let headers = [("user-agent", "Sekisho"), ("sekisho-message-id", "msg_1")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (result, took) = client.post(&headers, Bytes::from_static(BODY.as_bytes())).await;
    assert!(took < client.timeout + Duration::from_secs(2), "the time-out does not hold: {took:?}");
    result
}

async fn answer(steps: &'static [Step], timeout: Duration) -> Result<Answer, Fault> {
    post(&Server::start(steps).await.client(timeout)).await
}

#[tokio::test]
async fn c2_the_request_arrives_as_given_and_the_answer_comes_back() {
    let server =
        Server::start(&[Say("HTTP/1.1 200 OK\r\nX-One: 1\r\ncontent-length: 2\r\n\r\nok"), Close]).await;
    let answer = post(&server.client(LONG)).await.unwrap();
    assert_eq!((answer.status, &answer.body[..], answer.truncated), (200, &b"ok"[..], false));
    assert_eq!(answer.headers[0], ("x-one".into(), "1".into()));
    let heard = &server.heard()[0];
    assert!(heard.starts_with("POST /in?key=canary HTTP/1.1\r\n"), "{heard}");
    for line in ["user-agent: Sekisho", "sekisho-message-id: msg_1", "content-length: 13"] {
        assert_eq!(heard.matches(&format!("\r\n{line}\r\n")).count(), 1, "{line} in {heard}");
    }
    assert!(!heard.contains("accept-encoding") && !heard.contains("referer"), "{heard}");
}

#[tokio::test]
async fn c2_headers_that_frame_a_request_are_ours_alone() {
    let server = Server::start(&[Say(NO_CONTENT)]).await;
    let given = ["content-length", "Transfer-Encoding", "host", "connection", "x-own"];
    let given: Vec<_> = given.iter().map(|name| ((*name).to_owned(), "chunked".to_owned())).collect();
    server.client(LONG).post(&given, Bytes::from_static(BODY.as_bytes())).await.0.unwrap();
    let heard = &server.heard()[0];
    assert_eq!(heard.matches("chunked").count(), 1, "{heard}");
    assert!(heard.contains("x-own: chunked\r\n") && heard.contains("host: 127.0.0.1:"), "{heard}");

    let bad = [("x-note".to_owned(), "two\nlines".to_owned())];
    let (result, _) = server.client(LONG).post(&bad, Bytes::new()).await;
    assert_eq!(result, Err(Fault::Broken("the header \"x-note\" can't be sent".into())));
}

#[tokio::test]
async fn c5_a_redirect_is_an_answer_and_not_followed() {
    let server =
        Server::start(&[Say("HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n"), Stall])
            .await;
    let answer = post(&server.client(LONG)).await.unwrap();
    assert_eq!((answer.status, answer.headers[0].1.as_str()), (302, "/other"));
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn c2_an_error_comes_back_with_its_body_and_odd_headers() {
    let answer = answer(
        &[Say("HTTP/1.1 500 Oops\r\nretry-after: 7\r\nx-odd: \u{e9}\r\ncontent-length: 4\r\n\r\nbusy")],
        LONG,
    );
    let answer = answer.await.unwrap();
    assert_eq!((answer.status, &answer.body[..]), (500, &b"busy"[..]));
    assert_eq!(answer.headers[..2], [("retry-after".into(), "7".into()), ("x-odd".into(), "é".into())]);
}

#[tokio::test]
async fn c2_of_a_long_body_the_first_64_kib_are_kept() {
    let exact = answer(&[Say("HTTP/1.1 200 OK\r\ncontent-length: 65536\r\n\r\n"), Fill(65_536), Stall], LONG);
    let exact = exact.await.unwrap();
    assert_eq!((exact.body.len(), exact.truncated), (BODY_KEPT_BYTES, false));
    let longer =
        answer(&[Say("HTTP/1.1 200 OK\r\ncontent-length: 65537\r\n\r\n"), Fill(65_537), Stall], LONG);
    let longer = longer.await.unwrap();
    assert_eq!((longer.body.len(), longer.truncated), (BODY_KEPT_BYTES, true));
}

#[tokio::test]
async fn c2_an_endless_body_ends_with_what_is_kept() {
    let answer = answer(&[Say("HTTP/1.1 200 OK\r\n\r\n"), Endless], LONG).await.unwrap();
    assert_eq!((answer.status, answer.body.len(), answer.truncated), (200, BODY_KEPT_BYTES, true));
}

#[tokio::test]
async fn c4_silence_ends_at_the_time_out() {
    assert_eq!(answer(&[Stall], SHORT).await, Err(Fault::Timeout));
    assert_eq!(answer(&[Say("HTTP/1.1 200 OK\r\nx-"), Stall], SHORT).await, Err(Fault::Timeout));
}

#[tokio::test]
async fn c2_a_status_counts_even_if_its_body_never_comes() {
    for steps in [
        &[Say("HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\nhalf"), Stall],
        &[Say("HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\nhalf"), Close],
    ] {
        let answer = answer(steps, SHORT).await.unwrap();
        assert_eq!((answer.status, &answer.body[..], answer.truncated), (201, &b"half"[..], true));
    }
}

#[tokio::test]
async fn c2_a_connection_that_breaks_before_the_status_is_a_fault() {
    for steps in [&[Reset][..], &[Close], &[Say("HTTP/1.1 20"), Reset], &[Say("nonsense\r\n\r\n")]] {
        let result = answer(steps, LONG).await;
        let Err(Fault::Broken(text)) = result else { panic!("{result:?}") };
        assert!(!text.is_empty() && !text.contains("canary"), "{text}");
    }
}

#[tokio::test]
async fn c2_headers_are_bounded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101));
        let _ = stream.write_all(many.as_bytes()).await;
        hear(&mut stream, &Mutex::new(vec![String::new()]), 0).await;
        std::future::pending::<()>().await;
    });
    let client = Client::new(&format!("http://127.0.0.1:{port}/"), LONG, true).unwrap();
    assert!(matches!(post(&client).await, Err(Fault::Broken(_))));
}

#[tokio::test]
async fn c2_a_refused_connection_says_so() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let client = Client::new(&format!("http://127.0.0.1:{port}/?key=canary"), LONG, true).unwrap();
    let result = post(&client).await;
    let Err(Fault::Connect(text)) = result else { panic!("{result:?}") };
    assert!(text.contains("refused") && !text.contains("canary"), "{text}");
}

#[tokio::test]
async fn c2_a_name_that_can_not_be_resolved_says_so() {
    // A label this long fails in the resolver itself: no test asks a name server.
    let host = format!("{}.invalid", "x".repeat(64));
    let client = Client::new(&format!("http://{host}/?key=canary"), LONG, false).unwrap();
    let result = post(&client).await;
    let Err(Fault::Dns(text)) = result else { panic!("{result:?}") };
    assert!(text.contains(&host) && !text.contains("canary"), "{text}");
}

#[tokio::test]
async fn c5_private_addresses_are_refused_however_they_are_written() {
    let server = Server::start(&[Say(NO_CONTENT)]).await;
    let port = server.port;
    for (host, seen) in [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.0.0.1", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0"),
        ("[::1]", "::1"),
        ("[0:0::0:1]", "::1"),
        ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"),
        ("169.254.169.254", "169.254.169.254"),
        ("10.0.0.1", "10.0.0.1"),
        ("LOCALHOST", "localhost leads to"),
    ] {
        for scheme in ["http", "https"] {
            let client = Client::new(&format!("{scheme}://{host}:{port}/?key=canary"), LONG, false).unwrap();
            let result = post(&client).await;
            let Err(Fault::Forbidden(text)) = result else { panic!("{host}: {result:?}") };
            assert!(text.contains(seen) && !text.contains("canary"), "{host}: {text}");
        }
    }
    assert_eq!(server.heard().len(), 0, "something was connected to");
}

#[tokio::test]
async fn c5_an_operator_may_allow_private_addresses() {
    let server = Server::start(&[Say(NO_CONTENT)]).await;
    for host in ["127.0.0.1", "localhost"] {
        let client = Client::new(&format!("http://{host}:{}/", server.port), LONG, true).unwrap();
        assert_eq!(post(&client).await.unwrap().status, 204);
    }
}

#[tokio::test]
async fn c5_only_addresses_over_http_without_a_password_are_taken() {
    for url in
        ["ftp://example.com/", "file:///etc/passwd", "example.com", "http://", "http://a:b@example.com/"]
    {
        assert!(Client::new(url, LONG, false).is_err(), "{url}");
    }
}

#[tokio::test]
async fn c2_https_against_a_plain_port_is_a_fault_of_tls() {
    for (steps, timeout) in [(&[Say("HTTP/1.1 400 Bad Request\r\n\r\n")], LONG), (&[Close], LONG)] {
        let server = Server::start(steps).await;
        let client =
            Client::new(&format!("https://localhost:{}/?key=canary", server.port), timeout, true).unwrap();
        let result = post(&client).await;
        let Err(Fault::Tls(text)) = result else { panic!("{result:?}") };
        assert!(!text.is_empty() && !text.contains("canary"), "{text}");
    }
    let server = Server::start(&[Stall]).await;
    let client = Client::new(&format!("https://localhost:{}/", server.port), SHORT, true).unwrap();
    assert_eq!(post(&client).await, Err(Fault::Timeout));
}

#[tokio::test]
async fn c4_connections_are_kept_and_a_closed_one_is_replaced() {
    let server = Server::start(&[Say(NO_CONTENT), Next, Say(NO_CONTENT), Close]).await;
    let client = server.client(LONG);
    for _ in 0..2 {
        assert_eq!(post(&client).await.unwrap().status, 204);
    }
    assert_eq!(server.heard().len(), 1);
    // The close is seen while the connection lies idle; on one thread that takes one turn, not a race.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(post(&client).await.unwrap().status, 204);
    assert_eq!(server.heard().len(), 2);
}

/// Answers by itself, with the address it was asked at.
struct StandIn;

#[async_trait::async_trait]
impl Exchange for StandIn {
    async fn exchange(&self, request: Request<Full<Bytes>>, _: usize, _: Instant) -> Result<Answer, Fault> {
        let body = request.uri().to_string().into();
        Ok(Answer { status: 204, headers: Vec::new(), body, truncated: false })
    }
}

#[tokio::test]
async fn r12_a_stand_in_answers_instead_of_the_network() {
    let client = Client::new("https://app.example/hook", LONG, false).unwrap().by(Arc::new(StandIn));
    let (answer, _) = client.post(&[], BODY.into()).await;
    let answer = answer.unwrap();
    assert_eq!((answer.status, &*answer.body), (204, &b"https://app.example/hook"[..]));
}
