//! How an application treats a request. Decided from the request and how often its message came before, never
//! from the clock: the same traffic meets the same fate, in whatever order it arrives.
//!
//! As text, for the command line:
//! `ok`, `drop`, `silent`, `status:503`, `status:489;upstash-nonretryable-error=true`, `fail:2:503`,
//! `delay:250:ok` (milliseconds), `slow:10` (milliseconds a byte), `mix:7:10=drop,20=status:500` (seed, then
//! per cent; the rest is `ok`).

use std::str::FromStr;
use std::time::Duration;

use super::AnsweredRequest;
use crate::rng::Rng;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Processes and answers 204.
    Ok,
    /// Processes if the status is 2xx.
    Answer(Reply),
    /// Gives this answer to the first requests of each message, then 204.
    FailFirst { requests: u32, reply: Reply },
    /// Works this long first. Goes on when the caller has left.
    Delay(Duration, Box<Behaviour>),
    /// Takes the request and neither processes nor answers it.
    Silent,
    /// Processes, then closes the connection: the caller can't know.
    Drop,
    /// Processes, then answers byte by byte with this pause.
    Slow(Reply, Duration),
    /// Per cent of the requests, by seed; the rest is [`Behaviour::Ok`].
    Mix { seed: u64, parts: Vec<(u8, Behaviour)> },
    /// By exact path, without its query; the last one for all others.
    Paths(Vec<(String, Behaviour)>, Box<Behaviour>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What happens to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AppAct {
    pub delay: Duration,
    pub ending: AppEnding,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AppEnding {
    Reply(Reply),
    Trickle(Reply, Duration),
    Silence,
    Drop,
}

impl Behaviour {
    pub fn status(status: u16) -> Self {
        Self::Answer(Reply::status(status))
    }

    /// `seen` counts the requests of this message before this one.
    pub(super) fn decide(&self, path: &str, message: &str, seen: u32) -> AppAct {
        let at_once = |ending| AppAct { delay: Duration::ZERO, ending };
        match self {
            Self::Ok => at_once(AppEnding::Reply(Reply::status(204))),
            Self::Answer(reply) => at_once(AppEnding::Reply(reply.clone())),
            Self::FailFirst { requests, reply } if seen < *requests => {
                at_once(AppEnding::Reply(reply.clone()))
            }
            Self::FailFirst { .. } => Self::Ok.decide(path, message, seen),
            Self::Delay(delay, then) => {
                let act = then.decide(path, message, seen);
                AppAct { delay: act.delay + *delay, ..act }
            }
            Self::Silent => at_once(AppEnding::Silence),
            Self::Drop => at_once(AppEnding::Drop),
            Self::Slow(reply, pause) => at_once(AppEnding::Trickle(reply.clone(), *pause)),
            Self::Mix { seed, parts } => {
                let mut left = Rng::new(seed ^ fingerprint(message, seen)).below(100);
                for (percent, part) in parts {
                    match left.checked_sub(u64::from(*percent)) {
                        Some(rest) => left = rest,
                        None => return part.decide(path, message, seen),
                    }
                }
                Self::Ok.decide(path, message, seen)
            }
            Self::Paths(paths, others) => {
                let path_only = path.split('?').next().unwrap_or_default();
                let own = paths.iter().find(|(own, _)| own == path_only).map(|(_, behaviour)| behaviour);
                own.unwrap_or(others).decide(path, message, seen)
            }
        }
    }
}

impl AppAct {
    pub fn answered(&self) -> AnsweredRequest {
        match &self.ending {
            AppEnding::Reply(reply) | AppEnding::Trickle(reply, _) => AnsweredRequest::Status(reply.status),
            AppEnding::Silence => AnsweredRequest::Nothing,
            AppEnding::Drop => AnsweredRequest::Dropped,
        }
    }
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn with_body(mut self, body: &str) -> Self {
        self.body = body.as_bytes().to_vec();
        self
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Told So\r\n", self.status);
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if self.status != 204 {
            head.extend(["content-length: ", &self.body.len().to_string(), "\r\n"]);
        }
        head.push_str("\r\n");
        [head.as_bytes(), &self.body].concat()
    }
}

/// FNV-1a: the same on every machine.
fn fingerprint(message: &str, seen: u32) -> u64 {
    let bytes = message.bytes().chain(seen.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl FromStr for Behaviour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let pair = || rest.split_once(':').ok_or_else(|| format!("{text:?} lacks its second part"));
        match word {
            "ok" => Ok(Self::Ok),
            "drop" => Ok(Self::Drop),
            "silent" => Ok(Self::Silent),
            "status" => reply(rest).map(Self::Answer),
            "fail" => {
                let (requests, answer) = pair()?;
                Ok(Self::FailFirst { requests: number(requests)?, reply: reply(answer)? })
            }
            "delay" => {
                let (ms, then) = pair()?;
                Ok(Self::Delay(Duration::from_millis(number(ms)?), Box::new(then.parse()?)))
            }
            "slow" => Ok(Self::Slow(Reply::status(200), Duration::from_millis(number(rest)?))),
            "mix" => {
                let (seed, parts) = pair()?;
                let part = |part: &str| {
                    let (percent, behaviour) =
                        part.split_once('=').ok_or_else(|| format!("{part:?} is not PERCENT=BEHAVIOUR"))?;
                    Ok::<_, String>((number(percent)?, behaviour.parse()?))
                };
                let parts: Vec<_> = parts.split(',').map(part).collect::<Result<_, _>>()?;
                Ok(Self::Mix { seed: number(seed)?, parts })
            }
            _ => Err(format!(
                "{text:?} is no behaviour: ok, drop, silent, status:, fail:, delay:, slow:, mix:"
            )),
        }
    }
}

/// `503` or `503;name=value;name=value`.
fn reply(text: &str) -> Result<Reply, String> {
    let mut parts = text.split(';');
    let mut reply = Reply::status(number(parts.next().unwrap_or_default())?);
    for part in parts {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is not NAME=VALUE"))?;
        reply = reply.with_header(name, value);
    }
    Ok(reply)
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is not a fitting number"))
}
