//! One call to a provider's API.

use sekisho_core::job::Attempt;
use sekisho_core::queue::Failure;

/// What came of it, and what is kept of it.
#[derive(Debug)]
pub struct Call<T> {
    pub result: Result<T, Failure>,
    pub attempt: Attempt,
    /// The answer was given before, to the same idempotency key.
    pub is_replayed: bool,
}

impl<T> Call<T> {
    /// The same, with the answer understood as something else.
    pub fn map<U>(self, understand: impl FnOnce(T) -> U) -> Call<U> {
        let Self { result, attempt, is_replayed } = self;
        Call { result: result.map(understand), attempt, is_replayed }
    }
}
