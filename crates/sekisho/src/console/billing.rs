//! What tenants subscribed to, and until when it is paid.

use super::page::Page;

pub const PAGES: &[Page] = &[];
