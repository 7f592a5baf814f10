//! One message: where it stands, every call it made, and what people did with it.

use askama::Template;
use sekisho_store::AuditFilter;

use super::changes::ActView;
use super::{AUDIT_MAX, CallView, MessageView, eyes};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Reply, Visit};
use crate::console::trouble::{Resource, Trouble};

#[derive(Template)]
#[template(path = "console/message.html")]
struct MessagePage {
    f: Frame,
    message: MessageView,
    /// `evt_…`
    event: Option<String>,
    acts: Vec<ActView>,
}

impl MessagePage {
    fn calls(&self) -> &[CallView] {
        &self.message.calls
    }
}

pub async fn show(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let missing = || Trouble::unknown(Resource::Message, &visit.id);
    let found = store.find_message(visit.seq(Resource::Message)?).await?.ok_or_else(missing)?;
    let message = MessageView::of(store, &found, eyes(&visit), visit.lang).await?;
    let acts = AuditFilter { target: Some(message.id.clone()), limit: AUDIT_MAX, ..AuditFilter::default() };
    let acts =
        store.find_audit(acts).await?.entries.iter().rev().map(|one| ActView::of(&one.entry)).collect();
    let event = found.event.map(|event| event.as_event().to_string());
    Reply::page(&MessagePage { f: visit.frame("events", message.title.clone()), message, event, acts })
}
