//! Addresses that nothing is sent to.

use super::page::Page;

pub const PAGES: &[Page] = &[];
