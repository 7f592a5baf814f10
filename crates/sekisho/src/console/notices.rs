//! What was told to whom: why did somebody not get a mail?

use super::page::Page;

pub const PAGES: &[Page] = &[];
