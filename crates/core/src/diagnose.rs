//! Why a request was refused, in words that lead to the cure: the steps of its verification, and the likely cause,
//! found by trying what commonly goes wrong until the signature fits. Pure, slow, and for people: the checkpoint
//! never calls it. No secret appears in what it says.

mod body;

use crate::event::Trust;
use crate::provider::{
    self, ALL, AboutProvider, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup, to_base64,
};
use crate::secret::Secret;
use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    pub genuine: bool,
    /// Absent when the request is genuine, or when it can't be told: the configuration is not good enough, or the
    /// certificate is not at hand.
    pub refusal: Option<RequestRefusal>,
    /// Where the certificate is without which it can't be told.
    pub needed_certificate: Option<String>,
    /// What most likely went wrong and what to do; absent when nothing did.
    pub cause: Option<String>,
    /// In the order of verification, up to the first that failed.
    pub checks: Vec<Check>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub ok: bool,
    pub detail: String,
}

pub fn diagnose(provider: &dyn Provider, setup: &Setup, request: &Request<'_>, now: Time) -> Diagnosis {
    let scheme = match provider.open(setup) {
        Ok(scheme) => scheme,
        Err(error) => {
            let checks = vec![check("configuration", false, &error.0)];
            return Diagnosis {
                genuine: false,
                refusal: None,
                needed_certificate: None,
                cause: Some(error.0),
                checks,
            };
        }
    };
    let this = Case { provider, setup, request, now };
    let scheme = scheme.as_ref();
    let refusal = verdict(scheme, request, now).err();
    let mut checks = this.steps(scheme, refusal.as_ref());
    if let Some(url) = this.needed_certificate(scheme, refusal.as_ref()) {
        // Nothing failed: it could not be looked at.
        checks.pop();
        let cause =
            Some(format!("Without the certificate at {url} it is unknown whether the request is genuine."));
        return Diagnosis { genuine: false, refusal: None, needed_certificate: Some(url), cause, checks };
    }
    let cause = if let Some(refusal) = &refusal {
        Some(this.cause(scheme, refusal))
    } else {
        let reading = this.reading(scheme);
        let cause = reading.as_ref().err().map(|what| format!("the request is genuine, but {what}"));
        checks.push(match &reading {
            Ok(found) => check("content", true, found),
            Err(what) => check("content", false, what),
        });
        cause
    };
    Diagnosis { genuine: refusal.is_none(), refusal, needed_certificate: None, cause, checks }
}

/// The refused request and all that is known about it.
#[derive(Clone, Copy)]
struct Case<'a> {
    provider: &'a dyn Provider,
    setup: &'a Setup,
    request: &'a Request<'a>,
    now: Time,
}

impl Case<'_> {
    fn about(&self) -> &'static AboutProvider {
        self.provider.about()
    }

    /// What was checked, up to the first step that failed. Topic and address are named only when they are wrong.
    fn steps(&self, scheme: &dyn Scheme, refusal: Option<&RequestRefusal>) -> Vec<Check> {
        let about = self.about();
        let has_certificate = matches!(scheme.certificate_url(self.request), Ok(Some(_)));
        let signs_time = about.tolerance_s.is_some()
            && (about.name != "generic_hmac" || self.setup.setting("timestamp_header").is_some());
        let tolerance = self.setup.tolerance_s.or(about.tolerance_s).unwrap_or_default();
        let steps = [
            ("configuration", true, "the source can be opened".to_owned()),
            ("request", true, "everything the proof needs is there and readable".to_owned()),
            ("topic", false, String::new()),
            ("certificate", has_certificate, "the provider's own, and in date".to_owned()),
            ("signature", about.trust != Trust::Hint, about.proof.to_owned()),
            ("address", false, String::new()),
            ("time", signs_time, format!("inside the tolerance of {tolerance} s")),
        ];
        let failed = refusal.map(|refusal| check(step(refusal), false, &refusal.to_string()));
        let reached =
            steps.iter().position(|(name, ..)| failed.as_ref().is_some_and(|failed| failed.name == *name));
        let passed = steps.iter().take(reached.unwrap_or(steps.len())).filter(|(_, applies, _)| *applies);
        passed.map(|(name, _, detail)| check(name, true, detail)).chain(failed).collect()
    }

    /// Everything before it is right, but the certificate was not brought along.
    fn needed_certificate(&self, scheme: &dyn Scheme, refusal: Option<&RequestRefusal>) -> Option<String> {
        let is_missing =
            self.request.certificate.is_none() && matches!(refusal, Some(RequestRefusal::BadCertificate(_)));
        scheme.certificate_url(self.request).ok().flatten().filter(|_| is_missing)
    }

    /// What a genuine request says.
    fn reading(&self, scheme: &dyn Scheme) -> Result<String, String> {
        match provider::peek(scheme, *self.request, self.now) {
            Err(unusable) => Err(unusable.0),
            Ok(RequestReading::Handshake(_)) => Ok("a handshake or ping, no event".into()),
            Ok(RequestReading::Events(events)) => {
                let names: Vec<_> =
                    events.iter().map(|event| format!("{} {}", event.kind, event.id)).collect();
                Ok(names.join(", "))
            }
        }
    }

    fn cause(&self, scheme: &dyn Scheme, refusal: &RequestRefusal) -> String {
        let title = self.about().title;
        match refusal {
            RequestRefusal::StaleTimestamp(age) => format!(
                "The signature is right, but it was made {age} s ago. If the request was sent just now, this machine's \
                 clock is about {age} s fast: check its time service. If it is a recording, check it at the time it was made."
            ),
            RequestRefusal::FutureTimestamp(ahead) => format!(
                "The signature is right, but made {ahead} s in the future: this machine's clock is slow by about that \
                 much, or the sender's is fast. Check the time service."
            ),
            RequestRefusal::BadSignature | RequestRefusal::BadToken => self.bad_signature(scheme),
            RequestRefusal::MissingHeader(_) | RequestRefusal::MalformedHeader(_) | RequestRefusal::MalformedBody | RequestRefusal::ForeignCall(_) => {
                self.looks_like_another().unwrap_or_else(|| format!(
                    "{}. Either a proxy in front removes or changes it, or the request was not made by {title}.",
                    sentence(refusal)
                ))
            }
            RequestRefusal::Unsigned => "SNS's \"raw message delivery\" is on, which sends no signature: switch it off for \
                 this subscription."
                .into(),
            RequestRefusal::ForeignCertificate(_) => format!(
                "{}. A forger would do this, so it is not fetched. If a proxy rewrites addresses in headers or bodies, \
                 exempt this path.",
                sentence(refusal)
            ),
            RequestRefusal::BadCertificate(what) => format!(
                "The certificate {what}. If it is out of date, look at this machine's clock."
            ),
            RequestRefusal::ForeignTopic(topic) => format!(
                "The message is of another topic. If {topic:?} is yours, write it into `topic_arn`."
            ),
            RequestRefusal::ForeignUrl(url) => format!(
                "The signature is right, but made for {url}. If that is this endpoint, write public_url = \"{url}\"."
            ),
        }
    }

    /// Tries what commonly goes wrong, the cheapest to repair first.
    fn bad_signature(&self, scheme: &dyn Scheme) -> String {
        self.untidy_secret()
            .or_else(|| self.key_convention())
            .or_else(|| self.other_address())
            .or_else(|| self.changed_body(scheme))
            .or_else(|| self.other_scheme())
            .unwrap_or_else(|| self.wrong_secret(scheme))
    }

    fn untidy_secret(&self) -> Option<String> {
        let (what, _) = UNTIDY.iter().find(|(_, tidy)| {
            let secrets =
                self.setup.secrets.iter().map(|secret| Secret::new(tidy(secret.expose()))).collect();
            self.fits(&Setup { secrets, ..self.setup.clone() }, self.request)
        })?;
        Some(format!("The configured secret {what}."))
    }

    /// Two conventions read a `whsec_…` secret differently.
    fn key_convention(&self) -> Option<String> {
        match self.about().name {
            "stripe" => {
                let scheme = provider::open_stripe_decoded(self.setup).ok()?;
                is_proven(scheme.as_ref(), self.request, self.now).then(|| {
                    "The sender decodes the secret from base 64, as Standard Webhooks does. Stripe's key is the text as \
                     it is, `whsec_` included: repair the sender."
                        .into()
                })
            }
            "standard_webhooks" | "svix" | "gitlab_signing" => {
                let encoded = |text: &str| Secret::new(to_base64(text));
                let plain = |text: &str| encoded(text.strip_prefix("whsec_").unwrap_or(text));
                [&encoded as &dyn Fn(&str) -> Secret, &plain].iter().find(|key| {
                    let secrets = self.setup.secrets.iter().map(|secret| key(secret.expose())).collect();
                    self.fits(&Setup { secrets, ..self.setup.clone() }, self.request)
                })?;
                Some(
                    "The sender uses the secret's text as the key, as Stripe does. Here the key is what base 64 decodes \
                     from the secret without its `whsec_`: repair the sender."
                        .into(),
                )
            }
            _ => None,
        }
    }

    fn other_address(&self) -> Option<String> {
        let url = self.setup.public_url.as_deref().filter(|_| self.about().signs_url)?;
        let fits = |url: &String| {
            self.fits(&Setup { public_url: Some(url.clone()), ..self.setup.clone() }, self.request)
        };
        let signed = other_spellings(url, self.request.query).into_iter().find(fits)?;
        Some(format!("The sender signed the address {signed}: write public_url = \"{signed}\"."))
    }

    fn changed_body(&self, scheme: &dyn Scheme) -> Option<String> {
        let (what, _) = body::variations(self.request.body)
            .find(|(_, body)| is_proven(scheme, &Request { body, ..*self.request }, self.now))?;
        Some(format!(
            "The body was changed on its way: the signature fits {what}. Hand on the raw bytes, before anything parses \
             them."
        ))
    }

    /// Does the signature fit another provider's rules, with the same secret?
    fn other_scheme(&self) -> Option<String> {
        let other = self.others().find(|other| {
            let scheme = other.open(&completed(*other, self.setup));
            other.about().trust == Trust::Signed
                && scheme.is_ok_and(|scheme| is_proven(scheme.as_ref(), self.request, self.now))
        })?;
        Some(self.misdirected(other.about()))
    }

    /// Has the request all that another provider's proof needs, whatever the secret?
    fn looks_like_another(&self) -> Option<String> {
        /// Good as text, as hex and as base 64.
        const ANY_SECRET: &str = "abcd0000abcd0000";
        let any = Setup { secrets: vec![Secret::new(ANY_SECRET)], ..self.setup.clone() };
        let other = self.others().find(|other| {
            let Ok(scheme) = other.open(&completed(*other, &any)) else { return false };
            let reached = verdict(scheme.as_ref(), self.request, self.now)
                .err()
                .is_none_or(|no| step(&no) != "request");
            let is_read = provider::peek(scheme.as_ref(), *self.request, self.now).is_ok();
            other.about().trust != Trust::Hint && reached && is_read
        })?;
        Some(self.misdirected(other.about()))
    }

    fn others(&self) -> impl Iterator<Item = &'static dyn Provider> {
        let own = self.about().name;
        ALL.iter().copied().filter(move |provider| provider.about().name != own)
    }

    fn misdirected(&self, other: &AboutProvider) -> String {
        format!(
            "This looks like a request of {}, sent to a source of {}: change its address there, or write \
             provider = \"{}\" here.",
            other.title,
            self.about().title,
            other.name
        )
    }

    fn wrong_secret(&self, scheme: &dyn Scheme) -> String {
        let about = self.about();
        if about.secret.is_empty() {
            let settings: Vec<_> =
                about.settings.iter().map(|setting| format!("`{}`", setting.name)).collect();
            return format!(
                "The signature was made over something else: {} is another endpoint's, or the body was changed on its way.",
                settings.join(", ")
            );
        }
        let livemode = match provider::peek(scheme, *self.request, self.now) {
            Ok(RequestReading::Events(events)) => events.first().and_then(|event| event.livemode),
            _ => None,
        };
        let mode = match livemode {
            Some(true) => " The body says it is live: is the configured secret that of the test endpoint?",
            Some(false) => " The body says it is a test: is the configured secret that of the live endpoint?",
            None => "",
        };
        let number = self.setup.secrets.len();
        format!(
            "Most likely the secret is another endpoint's, or was rotated ({number} configured): compare it with {}.{mode}",
            about.secret
        )
    }

    fn fits(&self, setup: &Setup, request: &Request<'_>) -> bool {
        self.provider.open(setup).is_ok_and(|scheme| is_proven(scheme.as_ref(), request, self.now))
    }
}

type Untidy = (&'static str, fn(&str) -> String);

/// What is wrong with the secret, and how it would be right.
const UNTIDY: [Untidy; 5] = [
    ("has spaces or a line break around it: remove them", |text| text.trim().to_owned()),
    ("has quotation marks around it: remove them", |text| {
        text.trim().trim_matches(['"', '\'', '`']).to_owned()
    }),
    ("ends in \\n written out: remove it", |text| text.trim_end_matches("\\n").to_owned()),
    ("lacks its `whsec_`: copy it whole", |text| format!("whsec_{text}")),
    ("lacks the line break that the sender's copy ends in: make both alike", |text| format!("{text}\n")),
];

fn check(name: &'static str, ok: bool, detail: &str) -> Check {
    Check { name, ok, detail: detail.to_owned() }
}

/// The step of verification that a refusal stands for.
fn step(refusal: &RequestRefusal) -> &'static str {
    match refusal {
        RequestRefusal::MissingHeader(_)
        | RequestRefusal::MalformedHeader(_)
        | RequestRefusal::MalformedBody
        | RequestRefusal::ForeignCall(_)
        | RequestRefusal::Unsigned => "request",
        RequestRefusal::ForeignCertificate(_) | RequestRefusal::BadCertificate(_) => "certificate",
        RequestRefusal::BadSignature | RequestRefusal::BadToken => "signature",
        RequestRefusal::ForeignTopic(_) => "topic",
        RequestRefusal::ForeignUrl(_) => "address",
        RequestRefusal::StaleTimestamp(_) | RequestRefusal::FutureTimestamp(_) => "time",
    }
}

fn verdict(scheme: &dyn Scheme, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal> {
    scheme.certificate_url(request)?;
    scheme.check(request, now)
}

/// Is the signature right? Schemes look at the time after it, so a late request counts.
fn is_proven(scheme: &dyn Scheme, request: &Request<'_>, now: Time) -> bool {
    matches!(
        verdict(scheme, request, now),
        Ok(()) | Err(RequestRefusal::StaleTimestamp(_) | RequestRefusal::FutureTimestamp(_))
    )
}

/// The setup with whatever else another provider must have in order to open, and without what it may not have.
fn completed(provider: &dyn Provider, setup: &Setup) -> Setup {
    let mut setup = Setup { tolerance_s: None, ..setup.clone() };
    setup.public_url.get_or_insert_with(|| "https://localhost/".into());
    for setting in provider.about().settings.iter().filter(|setting| setting.required) {
        setup.settings.entry(setting.name.into()).or_insert_with(|| setting.example.into());
    }
    setup
}

/// Addresses that people mistake for each other.
fn other_spellings(url: &str, query: &str) -> Vec<String> {
    let (base, own_query) = url.split_once('?').map_or((url, ""), |(base, query)| (base, query));
    let slash = base.strip_suffix('/').map_or_else(|| format!("{base}/"), str::to_owned);
    let mut bases = vec![base.to_owned(), slash];
    for base in bases.clone() {
        if let Some(rest) = base.strip_prefix("https://") {
            bases.push(format!("http://{rest}"));
        } else if let Some(rest) = base.strip_prefix("http://") {
            bases.push(format!("https://{rest}"));
        }
    }
    for base in bases.clone() {
        if let Some((scheme, (host, path))) =
            base.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('/')?)))
        {
            bases.push(match host.split_once(':') {
                Some((host, _port)) => format!("{scheme}://{host}/{path}"),
                None => format!("{scheme}://{host}:443/{path}"),
            });
        }
    }
    let with = |query: &str| {
        let join = |base: &String| if query.is_empty() { base.clone() } else { format!("{base}?{query}") };
        bases.iter().map(join).collect::<Vec<_>>()
    };
    let mut all = [with(own_query), with(""), with(query)].concat();
    all.retain(|other| other != url);
    all
}

fn sentence(refusal: &RequestRefusal) -> String {
    let text = refusal.to_string();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
