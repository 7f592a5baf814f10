//! A Checkout Session as Stripe is asked for it: one item at one price, paid once.

use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::money::Currency;

/// Characters that Stripe takes of a product's name, and of a reference.
const NAME_MAX: usize = 250;
const REFERENCE_MAX: usize = 200;

#[derive(Clone, Debug)]
pub struct SessionRequest {
    /// In the currency's smallest unit.
    pub amount: i64,
    pub currency: Currency,
    /// What is bought, as the customer reads it.
    pub name: String,
    /// The shop's own number of the order.
    pub reference: String,
    /// On the session and on its payment intent: what comes of either is known by it.
    pub metadata: Vec<(String, String)>,
    pub email: Option<String>,
    pub language: Language,
    pub expires_at: Time,
    pub success_url: String,
    pub cancel_url: Option<String>,
    /// None is Stripe's choice.
    pub methods: Vec<String>,
}

impl SessionRequest {
    /// In the order and with the brackets of Stripe's own libraries.
    pub fn form(&self) -> Vec<(String, String)> {
        let mut form: Vec<(String, String)> = Vec::new();
        let mut put = |name: &str, value: String| form.push((name.to_owned(), value));
        put("mode", "payment".into());
        put("line_items[0][price_data][currency]", self.currency.as_str().to_ascii_lowercase());
        put("line_items[0][price_data][unit_amount]", self.amount.to_string());
        put("line_items[0][price_data][product_data][name]", self.name.chars().take(NAME_MAX).collect());
        put("line_items[0][quantity]", "1".into());
        put("client_reference_id", self.reference.chars().take(REFERENCE_MAX).collect());
        for (name, value) in &self.metadata {
            put(&format!("metadata[{name}]"), value.clone());
        }
        for (name, value) in &self.metadata {
            put(&format!("payment_intent_data[metadata][{name}]"), value.clone());
        }
        if let Some(email) = &self.email {
            put("customer_email", email.clone());
        }
        put("locale", self.language.name().to_owned());
        put("expires_at", self.expires_at.seconds().to_string());
        put("success_url", self.success_url.clone());
        if let Some(url) = &self.cancel_url {
            put("cancel_url", url.clone());
        }
        for (n, method) in self.methods.iter().enumerate() {
            put(&format!("payment_method_types[{n}]"), method.clone());
        }
        form
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sekisho_core::Secret;
    use sekisho_core::job::Class;
    use sekisho_lab::stripe::{self as lab, Stripe};
    use serde_json::Value;

    use super::super::{Client, Collection};
    use super::*;
    use crate::effects::provider_api::NOT_TAKEN;

    fn request(now: Time) -> SessionRequest {
        SessionRequest {
            amount: 4_800,
            currency: Currency::parse("jpy").unwrap(),
            name: "Planetarium & stars".into(),
            reference: "ORD-1".into(),
            metadata: vec![("order_id".into(), "pay_1".into())],
            email: Some("taro@example.jp".into()),
            language: Language::Ja,
            expires_at: now.plus_ms(31 * 60_000),
            success_url: "https://pay.example.jp/o/x/thanks".into(),
            cancel_url: Some("https://pay.example.jp/o/x/failed?try=1".into()),
            methods: vec!["card".into(), "konbini".into()],
        }
    }

    #[test]
    fn e1_a_session_is_asked_for_in_the_form_of_stripes_own_libraries() {
        let form = request(Time::from_seconds(1_780_000_000)).form();
        let sent: Vec<String> = form.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let wanted = [
            "mode=payment",
            "line_items[0][price_data][currency]=jpy",
            "line_items[0][price_data][unit_amount]=4800",
            "line_items[0][price_data][product_data][name]=Planetarium & stars",
            "line_items[0][quantity]=1",
            "client_reference_id=ORD-1",
            "metadata[order_id]=pay_1",
            "payment_intent_data[metadata][order_id]=pay_1",
            "customer_email=taro@example.jp",
            "locale=ja",
            "expires_at=1780001860",
            "success_url=https://pay.example.jp/o/x/thanks",
            "cancel_url=https://pay.example.jp/o/x/failed?try=1",
            "payment_method_types[0]=card",
            "payment_method_types[1]=konbini",
        ];
        assert_eq!(sent, wanted);
    }

    #[tokio::test]
    async fn e1_a_session_is_made_once_for_a_key_and_one_that_is_complete_is_not_expired() {
        let stripe = Stripe::start().unwrap();
        let client = Client::new(&stripe.url(), Secret::new(lab::KEY), Duration::from_secs(20)).unwrap();
        let now = crate::env::now();
        let read =
            |text: &str| serde_json::from_str::<Value>(text).unwrap()["id"].as_str().unwrap().to_owned();
        let first = client.create_session(&request(now), "k1", now).await.result.unwrap();
        let again = client.create_session(&request(now), "k1", now).await;
        assert!(again.is_replayed);
        assert_eq!(read(first.get()), read(again.result.unwrap().get()));
        let other = SessionRequest { amount: 1, ..request(now) };
        let reused = client.create_session(&other, "k1", now).await.result.unwrap_err();
        assert_eq!((reused.class, reused.reason), (Class::Terminal, super::super::KEY_REUSED));
        let soon = SessionRequest { expires_at: now.plus_ms(60_000), ..request(now) };
        let soon = client.create_session(&soon, "k2", now).await.result.unwrap_err();
        assert_eq!((soon.class, soon.reason), (Class::Terminal, super::super::EXPIRES_AT));
        let second = read(client.create_session(&request(now), "k3", now).await.result.unwrap().get());
        client.expire_session(&second, "k4", now).await.result.unwrap();
        stripe.pay_session(&read(first.get()));
        for (id, key) in [(second, "k5"), (read(first.get()), "k6")] {
            let refused = client.expire_session(&id, key, now).await.result.unwrap_err();
            assert_eq!((refused.class, refused.reason), (Class::Terminal, NOT_TAKEN), "{id}");
            client.retrieve(Collection::CheckoutSessions, &id, now).await.result.unwrap();
        }
    }
}
