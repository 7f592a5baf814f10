//! How things stand, at a glance.

use super::page::Page;

pub const PAGES: &[Page] = &[];
