//! One event, from its arrival to its last effect; and settling it again.

use super::page::Page;

pub const PAGES: &[Page] = &[];
