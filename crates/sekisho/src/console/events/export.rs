//! The list of events as a file.

use sekisho_store::FIND_MAX;

use super::{GivenFilters, rows};
use crate::console::page::{Answer, Visit};
use crate::console::sheet::{CsvFile, ROWS_MAX};

/// Looks into the past for one file: filters may find little in each.
const LOOKS_MAX: usize = 100;

/// What the filters find, newest first, as far as [`ROWS_MAX`] and [`LOOKS_MAX`] go.
pub async fn export(visit: Visit) -> Answer {
    let _alone = visit.alone()?;
    let store = &*visit.console.store;
    let mut filter = GivenFilters::of(&visit)?.filter(&visit)?;
    let mut sheet = CsvFile::new([
        "id",
        "received_at",
        "source",
        "type",
        "status",
        "mode",
        "object",
        "payment",
        "tenant",
        "note",
    ])?;
    let mut written = 0;
    for _ in 0..LOOKS_MAX {
        filter.limit = FIND_MAX.min(ROWS_MAX - written);
        let page = store.find_events(filter.clone()).await?;
        for row in rows::of(store, &page.events).await? {
            written += 1;
            sheet.row([
                row.id,
                row.received_at.to_string(),
                row.source,
                row.event_type,
                row.status.to_owned(),
                if row.is_test { "test" } else { "live" }.to_owned(),
                row.object,
                row.payment.unwrap_or_default(),
                row.tenant.unwrap_or_default(),
                row.note,
            ])?;
        }
        if page.next.is_none() || written >= ROWS_MAX {
            break;
        }
        filter.before = page.next;
    }
    sheet.reply("events")
}
