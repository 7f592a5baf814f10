//! What failed for good and waits for a person.

use super::page::Page;

pub const PAGES: &[Page] = &[];
