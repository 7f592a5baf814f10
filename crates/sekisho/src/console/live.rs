//! What comes in, as it comes in.

use super::page::Page;

pub const PAGES: &[Page] = &[];
