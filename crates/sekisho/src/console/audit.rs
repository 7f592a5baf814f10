//! Who did what, and whether the log is whole.

use super::page::Page;

pub const PAGES: &[Page] = &[];
