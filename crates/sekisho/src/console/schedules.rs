//! Which events Sekisho makes itself, and when.

use super::page::Page;

pub const PAGES: &[Page] = &[];
