//! One call to a provider's API.

use sekisho_core::job::Attempt;
use sekisho_core::queue::Failure;

/// What came of it, and what is kept of it.
#[derive(Debug)]
pub struct ApiCall<T> {
    pub result: Result<T, Failure>,
    pub attempt: Attempt,
    /// The answer was given before, to the same idempotency key.
    pub is_replayed: bool,
}

impl<T> ApiCall<T> {
    /// The same, with the answer understood as something else.
    pub fn map<U>(self, understand: impl FnOnce(T) -> U) -> ApiCall<U> {
        let Self { result, attempt, is_replayed } = self;
        ApiCall { result: result.map(understand), attempt, is_replayed }
    }
}
