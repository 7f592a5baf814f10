//! What commands show to others, and what others make them print.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Attack;
use super::letter::{Letter, genuine};

/// Clipboard, screen, colours by one byte, and a line that runs backwards.
const ODD: &str = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{7f}\u{9b}31m\u{202e}cba\u{2066}";

/// What a terminal obeys (C0, DEL, C1), and what turns the direction of writing. Line breaks and tabs are what they seem.
fn is_obeyed(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        letter => {
            matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        }
    }
}

pub fn run(attack: &mut Attack<'_>) -> Result<(), String> {
    proxies(attack)?;
    escapes(attack)
}

/// A proxy of the environment is shown nothing that goes to this machine.
fn proxies(attack: &mut Attack<'_>) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let url = format!("http://{}", listener.local_addr().map_err(|error| error.to_string())?);
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            count.fetch_add(1, Ordering::Relaxed);
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let env = ["http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"].map(|name| (name, &*url));
    let address = format!("http://{}", attack.house.server.address());
    let port = attack.house.server.address().port();
    // With what each must print: a command that never called the server would show its key to nobody.
    for (words, proof) in [
        (&["keys", "list"][..], "admins"),
        (&["tenants", "create", "proxied"], "proxied"),
        (&["tenants", "create", "proxied-2", "--server", &address], "proxied-2"),
        (
            &[
                "tenants",
                "create",
                "proxied-3",
                "--server",
                &format!("http://localhost:{port}"),
                "--key",
                "any",
            ],
            "the server at",
        ),
        (&["trigger", "charge.succeeded", "--source", "stripe", "--url", &address], "accepted"),
        (&["send", "--source", "payjp", "--url", &address], "accepted"),
        (&["doctor"], "and ready"),
    ] {
        let before = asked.load(Ordering::Relaxed);
        let said = attack.house.run(words, &env).all();
        let seen = asked.load(Ordering::Relaxed) > before;
        attack.book.line("the environment's proxy").tried(seen, || words.join(" "));
        if !seen && !said.contains(proof) {
            return Err(format!("{words:?} did not say {proof:?}: {said}"));
        }
    }
    Ok(())
}

/// Strangers' letters come out of no command as they are.
fn escapes(attack: &mut Attack<'_>) -> Result<(), String> {
    let house = attack.house;
    let hint = Letter::post("/webhooks/mollie_classic", &format!("id=tr_escape&x={ODD}"));
    let odd = genuine("stripe", "evt", "odd", format!("no event {ODD}")).and("x-odd", "\u{9b}2J\u{202e}");
    let named = genuine("stripe", "evt", "odd", "{\"id\":\"evt_\u{202e}x\",\"type\":\"a\u{202e}b\"}");
    let mut ids = Vec::new();
    for letter in [hint, odd, named] {
        let answer = house.send(&letter.and("user-agent", "\u{9b}2J"));
        attack.book.line("letters that a terminal obeys").asked(&answer, || "an odd event".into(), |_| false);
        ids.extend(answer.ok().and_then(|answer| answer.header("sekisho-message-id").map(str::to_owned)));
    }
    let refused = Letter::post("/webhooks/stripe", "{}")
        .and("stripe-signature", &format!("t=1,v1=\u{9b}{}", "0".repeat(64)));
    let _ = house.send(&refused);
    house.rest()?;
    let mut commands: Vec<Vec<String>> =
        ["events list", "dead list", "rejections", "notices", "suppressions list", "audit list", "payments"]
            .iter()
            .map(|line| line.split(' ').map(str::to_owned).collect())
            .collect();
    let dead = house.run(&["dead", "list", "--json"], &[]).done()?;
    let dead = dead.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let dead: Vec<_> = dead.filter_map(|letter| letter["id"].as_str().map(str::to_owned)).take(5).collect();
    for (what, ids) in [("events", ids), ("dead", dead)] {
        commands.extend(ids.into_iter().map(|id| vec![what.to_owned(), "show".to_owned(), id]));
    }
    let mut shown = String::new();
    for words in commands {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        for more in [&[][..], &["--json"]] {
            let said = house.run(&[&words, more].concat(), &[]);
            let (is_done, said) = (said.good, said.all());
            if !is_done {
                return Err(format!("{words:?} {more:?}: {said}"));
            }
            let raw = said.contains(is_obeyed);
            attack
                .book
                .line("letters that a terminal obeys")
                .tried(raw, || format!("{words:?} {more:?}: {said}"));
            shown += &said;
        }
    }
    // They are written out, not lost on the way: there was something to obey.
    for written in [r"\u{1b}]52", r"\u{9b}", r"\u{202e}", r"\u001b", r"\u202e"] {
        if !shown.contains(written) {
            return Err(format!("no command showed {written}"));
        }
    }
    Ok(())
}
