//! What the commands of tenants, customers, staff and subjects share: a list page by page, and one that is entered.

use std::process::ExitCode;

use sekisho_core::directory::{Register, scoped};
use sekisho_core::state::State;
use sekisho_store::{StateFilter, Store};
use serde_json::{Map, Value};

use super::output::{cell, json_out, line_out};
use super::pages::{self, Pages};
use super::server::{Door, New, Through};
use super::{Context, states};
use crate::view::{self, unlink};

/// Which of a list are shown, and how.
pub struct List<'a> {
    pub register: Register,
    pub tenant: Option<String>,
    /// Mail addresses as they are, not masked.
    pub full: bool,
    pub columns: &'a [(&'a str, &'a str)],
    /// What is said when there is none.
    pub nothing: &'a str,
}

pub async fn list(list: List<'_>, pages: &Pages<String>, context: &Context) -> anyhow::Result<ExitCode> {
    let (store, _) = context.open_store().await?;
    let store: &dyn Store = &*store;
    let query = &StateFilter { tenant: list.tenant, ..StateFilter::all(list.register.kind(), 0) };
    let fetch = async |before: Option<String>, limit| {
        let before = before.map(|before| cursor(list.register, query.tenant.as_deref(), before));
        let found = states::page(store, query, before, limit).await?;
        let view = view::member_for(list.full);
        let shown = |state: &State| Ok((state.key.id.clone(), view(state)?));
        let mut rows: Vec<_> = found.iter().map(shown).collect::<sekisho_store::Result<_>>()?;
        unlink(store, rows.iter_mut().map(|(_, row)| row)).await?;
        Ok(rows)
    };
    pages::out(pages, list.columns, list.nothing, fetch).await?;
    Ok(ExitCode::SUCCESS)
}

/// Where a page ends that ended with this one: an id of the tenant whose list it is, or `TENANT/ID`.
fn cursor(register: Register, tenant: Option<&str>, before: String) -> String {
    match register {
        Register::Customers | Register::Staff | Register::Subjects if !before.contains('/') => {
            scoped(tenant, &before)
        }
        Register::Tenants | Register::Customers | Register::Staff | Register::Subjects => before,
    }
}

pub async fn create(
    register: Register,
    order: Map<String, Value>,
    json: bool,
    through: &Through,
    context: &Context,
) -> anyhow::Result<ExitCode> {
    let created = Door::open(through, context).await?.create(New::Member(register), order, None).await?;
    if json {
        json_out(&created);
    } else {
        line_out(&format!("Saved {} {}.", register.noun(), cell(&created["id"])));
    }
    Ok(ExitCode::SUCCESS)
}
