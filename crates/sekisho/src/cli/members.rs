//! What the commands of tenants, customers, staff and subjects share: a list page by page, and one that is entered.

use std::convert::identity;
use std::process::ExitCode;

use sekisho_core::directory::{Register, scoped};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Context;
use super::client::{Client, Needs, Query, Whole, path};
use super::output::{json_out, line_out};
use super::pages::{self, Listing, Pages};

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

pub async fn list(list: List<'_>, pages: Pages, context: &Context) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::READ).await?;
    let before = pages.before.map(|before| cursor(list.register, list.tenant.as_deref(), before));
    let pages = Pages { before, ..pages };
    let query = Query::new().with("tenant", list.tenant).with("addresses", list.full.then_some("full"));
    let path = path(&[list.register.name()])?;
    let list = Listing { path: &path, query, columns: list.columns, nothing: list.nothing };
    pages::out(&client, &pages, list, identity::<Value>).await?;
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

/// What those of every register have.
#[derive(Deserialize)]
struct Entered {
    id: String,
}

pub async fn create(
    register: Register,
    order: Map<String, Value>,
    json: bool,
    context: &Context,
) -> anyhow::Result<ExitCode> {
    let client = Client::open(context, Needs::ACT).await?;
    let created: Whole<Entered> = client.post(&path(&[register.name()])?, &order).await?;
    if json {
        json_out(&created);
    } else {
        line_out(&format!("Saved {} {}.", register.noun(), created.id));
    }
    Ok(ExitCode::SUCCESS)
}
