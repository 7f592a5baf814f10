//! Where events come from, where they go, and by which channels people are told.

use super::page::Page;

pub const PAGES: &[Page] = &[];
