//! Who was turned away at the door.

use super::page::Page;

pub const PAGES: &[Page] = &[];
