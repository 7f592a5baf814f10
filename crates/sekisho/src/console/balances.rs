//! What customers have with us, and the books.

use super::page::Page;

pub const PAGES: &[Page] = &[];
