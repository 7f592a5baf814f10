//! How a node reaches others: over the network, or by those who stand in for them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use sekisho_core::delivery::{Answer, Fault};
use sekisho_core::notification::{Message, Sent};
use tokio::time::Instant;

/// How HTTP requests go out: over the network (`effects::http`), or to whoever stands in for the other side.
#[async_trait]
pub trait Exchange: Send + Sync {
    /// Sends once, and ends by its deadline. Of the answer's body `body_max` bytes are kept; `truncated` says that there was
    /// more or that it broke off.
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        body_max: usize,
        deadline: Instant,
    ) -> Result<Answer, Fault>;
}

/// A way to tell somebody something. One try, and what became of it: whether it is tried again is decided elsewhere.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Tries once. It ends within the time it is given, whatever the other side does.
    async fn send(&self, message: &Message, within: Duration) -> Sent;
}

type OpenChannel = dyn Fn(&str) -> Box<dyn Channel> + Send + Sync;

#[derive(Clone, Default)]
pub struct Outside {
    exchange: Option<Arc<dyn Exchange>>,
    channels: Option<Arc<OpenChannel>>,
}

impl Outside {
    /// As it is.
    pub const fn network() -> Self {
        Self { exchange: None, channels: None }
    }

    /// Deliveries, messages over HTTP, questions to providers and their certificates go there.
    #[must_use]
    pub fn with_exchange(self, exchange: Arc<dyn Exchange>) -> Self {
        Self { exchange: Some(exchange), ..self }
    }

    /// What a configured channel of this name leads to.
    #[must_use]
    pub fn with_channels(self, open: impl Fn(&str) -> Box<dyn Channel> + Send + Sync + 'static) -> Self {
        Self { channels: Some(Arc::new(open)), ..self }
    }

    /// Who stands in for the network, if anyone does.
    pub fn exchange(&self) -> Option<Arc<dyn Exchange>> {
        self.exchange.clone()
    }

    /// What stands in for a channel, if anything does.
    pub fn channel(&self, name: &str) -> Option<Box<dyn Channel>> {
        self.channels.as_ref().map(|open| open(name))
    }
}
