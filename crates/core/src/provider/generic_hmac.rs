//! Any service that signs with an HMAC in a header: header, algorithm, encoding, prefix and what is signed are
//! settings. The signed text must hold the body, or nothing would be proven about it; a timestamp that is named must
//! be in it too, or anyone could renew it.

use std::borrow::Cow;
use std::str::FromStr;

use http::{HeaderName, Method};
use ring::hmac;

use super::signature::{Encoding, Keys};
use super::text::Text;
use super::{
    AboutProvider, CannotSign, Draft, Provider, ProviderSetting, Request, RequestReading, RequestRefusal,
    Scheme, Setup, SetupError, Signed, Unusable, Verified, check_window,
};
use crate::event::{Created, Event};
use crate::time::Time;

pub struct GenericHmac;

const TOLERANCE_S: i64 = 300;

static ABOUT: AboutProvider = AboutProvider {
    proof: "HMAC as configured",
    secret: "the secret shared with the sender",
    tolerance_s: Some(TOLERANCE_S),
    settings: &[
        setting("header", "the header that holds the signature", "X-Signature", true),
        setting("algorithm", "sha1, sha256 (default) or sha512", "sha256", false),
        setting("encoding", "hex (default) or base64", "hex", false),
        setting("prefix", "what stands before the signature in its header", "sha256=", false),
        setting(
            "signed",
            "what is signed: {body} with {timestamp}, {id} and text around",
            "{timestamp}.{body}",
            false,
        ),
        setting("timestamp_header", "the header that {timestamp} is taken from", "X-Timestamp", false),
        setting(
            "event_id",
            "body:<path> (default body:id), header:<Name>, or sha256 of the body",
            "body:id",
            false,
        ),
        setting(
            "event_type",
            "body:<path> (default body:type), header:<Name> or text:<fixed>",
            "body:type",
            false,
        ),
        setting(
            "created",
            "body:<path> or header:<Name>: seconds, milliseconds or RFC 3339",
            "body:created",
            false,
        ),
    ],
    sample: r#"{"id":"{id}","type":"{type}","created":{seconds}}"#,
    ..AboutProvider::new("generic_hmac", "Any HMAC")
};

const fn setting(
    name: &'static str,
    help: &'static str,
    example: &'static str,
    required: bool,
) -> ProviderSetting {
    ProviderSetting { name, help, example, required }
}

impl Provider for GenericHmac {
    fn about(&self) -> &'static AboutProvider {
        &ABOUT
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        let algorithm = match setup.setting("algorithm").unwrap_or("sha256") {
            "sha1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            "sha256" => hmac::HMAC_SHA256,
            "sha512" => hmac::HMAC_SHA512,
            other => return Err(wrong("algorithm", other, "sha1, sha256 or sha512")),
        };
        let encoding = match setup.setting("encoding").unwrap_or("hex") {
            "hex" => Encoding::Hex,
            "base64" => Encoding::Base64,
            other => return Err(wrong("encoding", other, "hex or base64")),
        };
        let open = Open {
            header: header_name("header", setup.required("header")?)?,
            encoding,
            prefix: setup.setting("prefix").unwrap_or_default().to_owned(),
            template: template(setup.setting("signed").unwrap_or("{body}"))?,
            timestamp: setup
                .setting("timestamp_header")
                .map(|name| header_name("timestamp_header", name))
                .transpose()?,
            id: Place::parse("event_id", setup.setting("event_id").unwrap_or("body:id"))?,
            kind: Place::parse("event_type", setup.setting("event_type").unwrap_or("body:type"))?,
            created: setup.setting("created").map(|place| Place::parse("created", place)).transpose()?,
            keys: Keys::from_text(setup, algorithm)?,
            tolerance_s: setup.tolerance_s.unwrap_or(TOLERANCE_S),
        };
        if setup.tolerance_s.is_some() && open.timestamp.is_none() {
            return Err(SetupError(
                "`tolerance` is for a signed time, and none is signed here: write {timestamp} into `signed` and \
                 timestamp_header = \"…\", or leave tolerance out"
                    .into(),
            ));
        }
        open.agrees().map_err(|what| SetupError(what.into()))?;
        Ok(Box::new(open))
    }
}

struct Open {
    header: HeaderName,
    encoding: Encoding,
    prefix: String,
    template: Vec<Piece>,
    timestamp: Option<HeaderName>,
    id: Place,
    kind: Place,
    created: Option<Place>,
    keys: Keys,
    tolerance_s: i64,
}

/// One piece of the signed text.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Plain(String),
    Body,
    Timestamp,
    Id,
}

/// Where a value stands.
enum Place {
    Body(String),
    Header(HeaderName),
    Fixed(String),
    Sha256,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal> {
        let value = request.header(self.header.as_str())?;
        let code = value.strip_prefix(self.prefix.as_str()).and_then(|code| self.encoding.read(code));
        let code = code.ok_or_else(|| RequestRefusal::malformed(self.header.as_str()))?;
        let mut signed_at = None;
        let mut timestamp = "";
        if let Some(name) = &self.timestamp {
            timestamp = request.header(name.as_str())?;
            let is_plain = !timestamp.starts_with(['+', '0']);
            let at = moment(timestamp).filter(|_| is_plain);
            signed_at = Some(at.ok_or_else(|| RequestRefusal::malformed(name.as_str()))?);
        }
        if self.template.windows(2).any(|pair| is_blurred(pair, request.body)) {
            return Err(RequestRefusal::MalformedBody);
        }
        let id = match &self.id {
            Place::Header(name) if self.template.contains(&Piece::Id) => request.header(name.as_str())?,
            _ => "",
        };
        if !self.keys.accept(&self.parts(request.body, timestamp, id), &[code]) {
            return Err(RequestRefusal::BadSignature);
        }
        signed_at.map_or(Ok(()), |at| check_window(at.seconds(), now, self.tolerance_s))
    }

    fn warnings(&self) -> Vec<&'static str> {
        let id = (!self.is_id_signed()).then_some(
            "event_id stands in a header that is not signed, so whoever saw one request can send it again under other ids; \
             write {id} into `signed` if the sender signs it, or take the id from the body: event_id = \"body:id\"",
        );
        let kind = matches!(self.kind, Place::Header(_)).then_some(
            "event_type stands in a header that is not signed, so whoever saw one request can send it again as another \
             type; take it from the body if it is there: event_type = \"body:type\"",
        );
        id.into_iter().chain(kind).collect()
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let needed = |place: &Place, what| {
            place
                .find(request)
                .ok_or_else(|| Unusable(format!("the request has no {what} where it should stand")))
        };
        let id = needed(&self.id, "event id")?;
        let kind = needed(&self.kind, "event type")?;
        let created = self.created.as_ref().and_then(|place| moment(&place.find(request)?));
        let event = if self.is_id_signed() { Event::new } else { Event::with_open_id };
        Ok(RequestReading::event(Event {
            // Whether it is the same on every delivery is the sender's affair, so it is not relied on.
            created: created.map(|at| Created { at, immutable: false }),
            ..event(id, kind, request.body)
        }))
    }

    fn sign(&self, draft: Draft, now: Time) -> Result<Signed, CannotSign> {
        let seconds = now.seconds().to_string();
        let code = self.keys.sign(&self.parts(&draft.body, &seconds, &draft.id));
        let mut headers = vec![
            (Cow::Borrowed("content-type"), "application/json".to_owned()),
            (self.header.to_string().into(), format!("{}{}", self.prefix, self.encoding.write(code))),
        ];
        if let Some(name) = &self.timestamp {
            headers.push((name.to_string().into(), seconds));
        }
        for (place, value) in [(&self.id, draft.id), (&self.kind, draft.kind)] {
            if let Place::Header(name) = place {
                headers.push((name.to_string().into(), value));
            }
        }
        Ok(Signed { method: Method::POST, headers, body: draft.body, query: None })
    }
}

impl Open {
    fn is_id_signed(&self) -> bool {
        !matches!(self.id, Place::Header(_)) || self.template.contains(&Piece::Id)
    }

    /// Do the settings agree with each other? The error says what to write.
    fn agrees(&self) -> Result<(), &'static str> {
        if !self.template.contains(&Piece::Body) {
            return Err("`signed` does not hold {body}: what the sender does not sign can't be believed");
        }
        match (&self.timestamp, self.template.contains(&Piece::Timestamp)) {
            (None, true) => Err("`signed` holds {timestamp}: write timestamp_header = \"…\" too"),
            (Some(_), false) => {
                Err("`timestamp_header` is not signed: write {timestamp} into `signed`, or remove the header")
            }
            _ if self.template.contains(&Piece::Id) && !matches!(self.id, Place::Header(_)) => Err(
                "`signed` holds {id}: write event_id = \"header:…\" so that it is known before the body is read",
            ),
            _ if self.template.windows(2).any(is_ambiguous) => Err(
                "in `signed` {id} stands beside another placeholder, so one signature fits several ids: write what the sender \
                 puts between them, or take the id from the body",
            ),
            _ => Ok(()),
        }
    }

    fn parts<'a>(&'a self, body: &'a [u8], timestamp: &'a str, id: &'a str) -> Vec<&'a [u8]> {
        let part = |piece: &'a Piece| match piece {
            Piece::Plain(text) => text.as_bytes(),
            Piece::Body => body,
            Piece::Timestamp => timestamp.as_bytes(),
            Piece::Id => id.as_bytes(),
        };
        self.template.iter().map(part).collect()
    }
}

impl Place {
    fn parse(name: &str, text: &str) -> Result<Self, SetupError> {
        match text.split_once(':') {
            Some(("body", path)) if !path.is_empty() => Ok(Self::Body(path.to_owned())),
            Some(("header", header)) => Ok(Self::Header(header_name(name, header)?)),
            Some(("text", fixed)) if name == "event_type" && !fixed.is_empty() => {
                Ok(Self::Fixed(fixed.to_owned()))
            }
            None if name == "event_id" && text == "sha256" => Ok(Self::Sha256),
            _ => Err(wrong(name, text, "body:<path>, such as body:data.id, or header:<Name>")),
        }
    }

    fn find<'r>(&self, request: &Verified<'r>) -> Option<Cow<'r, str>> {
        match self {
            Self::Body(path) => Text::at(request.body, path).map(|text| text.0),
            Self::Header(name) => request.optional_header(name.as_str()).map(Cow::Borrowed),
            Self::Fixed(text) => Some(text.clone().into()),
            Self::Sha256 => Some(request.digest_id().into()),
        }
    }
}

/// Whether what is taken from one could be given to the other. A timestamp says itself where it ends, as long as no digit of
/// the body touches it: [`is_blurred`].
fn is_ambiguous(pair: &[Piece]) -> bool {
    let is_plain = |piece: &Piece| matches!(piece, Piece::Plain(_));
    pair.contains(&Piece::Id) && !pair.iter().any(is_plain)
}

/// Whether digits could be moved between a timestamp and the body beside it: the first ten of milliseconds are the same
/// moment in seconds.
fn is_blurred(pair: &[Piece], body: &[u8]) -> bool {
    let touching = match pair {
        [Piece::Timestamp, Piece::Body] => body.first(),
        [Piece::Body, Piece::Timestamp] => body.last(),
        _ => None,
    };
    touching.is_some_and(u8::is_ascii_digit)
}

/// Splits `{timestamp}.{body}` into its pieces.
fn template(text: &str) -> Result<Vec<Piece>, SetupError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let unclosed = || wrong("signed", text, "{body}, {timestamp}.{body} or {id}.{timestamp}.{body}");
        let (name, after) = after.split_once('}').ok_or_else(unclosed)?;
        if !before.is_empty() {
            pieces.push(Piece::Plain(before.to_owned()));
        }
        pieces.push(match name {
            "body" => Piece::Body,
            "timestamp" => Piece::Timestamp,
            "id" => Piece::Id,
            _ => return Err(unclosed()),
        });
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Plain(rest.to_owned()));
    }
    Ok(pieces)
}

/// Seconds, milliseconds or RFC 3339.
fn moment(text: &str) -> Option<Time> {
    /// In seconds the year 5138, in milliseconds 1973.
    const SECONDS_MAX: i64 = 99_999_999_999;
    match text.parse::<i64>() {
        Ok(number) if number > SECONDS_MAX => Some(Time::from_ms(number)),
        Ok(number) => Some(Time::from_seconds(number)),
        Err(_) => Time::parse_rfc3339(text),
    }
}

fn header_name(setting: &str, name: &str) -> Result<HeaderName, SetupError> {
    HeaderName::from_str(name).map_err(|_| wrong(setting, name, "a header's name, such as X-Signature"))
}

fn wrong(setting: &str, value: &str, instead: &str) -> SetupError {
    SetupError(format!("`{setting}` is \"{value}\": write {instead}"))
}

#[cfg(test)]
mod tests;
