//! What may stand in a `[[source]]`, key by key.

use http::StatusCode;
use ipnet::IpNet;
use sekisho_core::source_name;
use url::Url;

use super::{SourceDraft, UnusableBody};
use crate::config::table::{self, SettingKey};

/// A provider's own keys come from its file.
pub const KEYS: &[SettingKey<SourceDraft>] = &[
    SettingKey {
        name: "name",
        example: "\"stripe\"",
        help: "Letters, digits, - and _. The webhook URL is /webhooks/NAME.",
        set: |draft, given| {
            let name = table::name(given)?;
            if [source_name::SCHEDULE, source_name::OWN, source_name::FETCHED].contains(&&*name) {
                return Err("this name is taken by Sekisho's own events; choose another".into());
            }
            draft.name = Some(name);
            Ok(())
        },
    },
    SettingKey {
        name: "provider",
        example: "\"stripe\"",
        help: "Who sends. `sekisho providers` lists them.",
        set: |draft, given| {
            draft.provider = Some(given.text()?);
            Ok(())
        },
    },
    SettingKey {
        name: "secrets",
        example: "[\"env:STRIPE_WEBHOOK_SECRET\"]",
        help: "env:NAME, file:PATH, or the text itself (with a warning). Several while you rotate.",
        set: |draft, given| {
            draft.secrets = given.list()?;
            Ok(())
        },
    },
    SettingKey {
        name: "path",
        example: "\"/webhooks/stripe\"",
        help: "Another path, so that a URL already registered at the provider can stay.",
        set: |draft, given| {
            let path = given.text()?;
            let reserved =
                ["/health", "/metrics", "/v1", "/console"].iter().any(|taken| path.starts_with(taken));
            if !path.starts_with('/') || path.contains(['?', '#', ' ']) || reserved {
                return Err(
                    "expected a path such as \"/stripe/hook\" outside /health, /metrics, /v1 and /console"
                        .into(),
                );
            }
            draft.path = Some(path);
            Ok(())
        },
    },
    SettingKey {
        name: "public_url",
        example: "\"https://pay.example.com/webhooks/stripe\"",
        help: "The address as the provider calls it; Square, Twilio and QStash sign it.",
        set: |draft, given| {
            let url = given.text()?;
            if !(url.starts_with("https://") || url.starts_with("http://")) {
                return Err(
                    "expected the whole address, such as \"https://pay.example.com/webhooks/square\"".into(),
                );
            }
            draft.public_url = Some(url);
            Ok(())
        },
    },
    SettingKey {
        name: "tolerance",
        example: "\"5m\"",
        help: "How old a signed timestamp may be, of providers that sign one; default: the provider's own rule.",
        set: |draft, given| {
            let duration = given.duration()?;
            // The timestamps have no finer parts.
            if duration.is_zero() || duration.subsec_nanos() > 0 {
                return Err("expected whole seconds, at least one, such as \"30s\" or \"5m\"".into());
            }
            draft.tolerance_s = Some(duration.as_secs() as i64);
            Ok(())
        },
    },
    SettingKey {
        name: "reject_status",
        example: "400",
        help: "Answer to forged or unsigned requests: 400 or 401.",
        set: |draft, given| {
            let status = given.count(400, 401).map_err(|_| "expected 400 or 401")?;
            draft.reject_status = StatusCode::from_u16(status as u16).ok();
            Ok(())
        },
    },
    SettingKey {
        name: "ack_status",
        example: "204",
        help: "Answer to accepted events and duplicates: 200 or 204.",
        set: |draft, given| {
            draft.ack_status = Some(match given.count(200, 204).map_err(|_| "expected 200 or 204")? {
                200 => StatusCode::OK,
                204 => StatusCode::NO_CONTENT,
                _ => return Err("expected 200 or 204".into()),
            });
            Ok(())
        },
    },
    SettingKey {
        name: "unusable",
        example: "\"acknowledge\"",
        help: "Answer to a genuine request without a usable event: acknowledge, or refuse (400). Stored either way.",
        set: |draft, given| {
            draft.unusable = Some(match given.text()?.as_str() {
                "acknowledge" => UnusableBody::Acknowledge,
                "refuse" => UnusableBody::Refuse,
                _ => return Err("expected \"acknowledge\" or \"refuse\"".into()),
            });
            Ok(())
        },
    },
    SettingKey {
        name: "allow_ips",
        example: "[\"203.0.113.0/24\", \"2001:db8::/32\"]",
        help: "Addresses that may send; default: any.",
        set: |draft, given| {
            for text in given.list()? {
                let net = text.parse().or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from));
                draft.allow_ips.push(
                    net.map_err(|_| format!("{text} is no address or network such as 203.0.113.0/24"))?,
                );
            }
            Ok(())
        },
    },
    SettingKey {
        name: "rate",
        example: "500",
        help: "Genuine requests a second; beyond that 503 with Retry-After. Hints, which prove nothing, have 20.",
        set: |draft, given| {
            draft.rate = Some(given.count(1, 1_000_000)? as u32);
            Ok(())
        },
    },
    SettingKey {
        name: "network_rate",
        example: "5",
        help: "Of those, requests a second from one network (IPv4 /24, IPv6 /48). Hints have a quarter of rate.",
        set: |draft, given| {
            draft.network_rate = Some(given.count(1, 1_000_000)? as u32);
            Ok(())
        },
    },
    SettingKey {
        name: "livemode",
        example: "true",
        help: "Events of the other mode become dead letters: a test event must not move real money. Default: as api_key says, if it does.",
        set: |draft, given| {
            draft.livemode = Some(given.boolean()?);
            Ok(())
        },
    },
    SettingKey {
        name: "account",
        example: "\"acct_1Nv0FGQ9RKHgCVdK\"",
        help: "Events that name another account, such as a connected one, become dead letters.",
        set: |draft, given| {
            let account = given.text()?;
            if account.trim().is_empty() {
                return Err("expected the account as the provider's events name it".into());
            }
            draft.account = Some(account);
            Ok(())
        },
    },
    SettingKey {
        name: "api_key",
        example: "\"env:STRIPE_API_KEY\"",
        help: "The secret key of the provider's API. What it is used for: docs/operating/provider-keys.md.",
        set: |draft, given| {
            draft.api_key = Some(given.text()?);
            Ok(())
        },
    },
    SettingKey {
        name: "client_id",
        example: "\"1479113123\"",
        help: "With api_key: PayPal's client id, LINE Pay's channel id.",
        set: |draft, given| {
            let id = given.text()?;
            if id.is_empty() || !id.bytes().all(|letter| letter.is_ascii_graphic() && letter != b':') {
                return Err("expected the id as the provider's console shows it".into());
            }
            draft.client_id = Some(id);
            Ok(())
        },
    },
    SettingKey {
        name: "refunds",
        example: "false",
        help: "Whether Sekisho may give money back with api_key. Its key needs the right to create refunds.",
        set: |draft, given| {
            draft.refunds = Some(given.boolean()?);
            Ok(())
        },
    },
    SettingKey {
        name: "reconcile",
        example: "true",
        help: "Whether events that never came are read from the provider with api_key; see [reconcile].",
        set: |draft, given| {
            draft.reconcile = Some(given.boolean()?);
            Ok(())
        },
    },
    SettingKey {
        name: "api_url",
        example: "\"https://api.stripe.com\"",
        help: "Where that API is, when it is not the provider's own.",
        set: |draft, given| {
            let wanted = "expected an address such as \"https://api.stripe.com\"";
            let url = Url::parse(&given.text()?).map_err(|_| wanted)?;
            draft.api_url =
                Some(Some(url).filter(|url| matches!(url.scheme(), "http" | "https")).ok_or(wanted)?);
            Ok(())
        },
    },
    SettingKey {
        name: "certificate",
        example: "\"file:./provider.pem\"",
        help: "PayPal and SNS: use this certificate instead of fetching the one a request names.",
        set: |draft, given| {
            draft.certificate = Some(given.text()?);
            Ok(())
        },
    },
];
