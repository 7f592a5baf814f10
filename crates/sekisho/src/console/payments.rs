//! Payments: where each stands, which facts say so, and where they came from.

use super::page::Page;

pub const PAGES: &[Page] = &[];
