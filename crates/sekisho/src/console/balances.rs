//! What customers have with us, and the books.

use std::collections::BTreeSet;
use std::time::Duration;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::settlement::payment::{balance_of, customer_account, customer_of};
use sekisho_store::{BookedLine, FIND_MAX, LineFilter, Store, Sum};

use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;
use crate::acts::Refusal;
use crate::queries;
use crate::types::Total;
use crate::view::{self, show};

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/balances",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/balances/{customer}",
        needs: VIEWER,
        run: |visit| Box::pin(show(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/books",
        needs: VIEWER,
        run: |visit| Box::pin(books(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/books/check",
        needs: OPERATOR,
        run: |visit| Box::pin(check(visit)),
    },
];

/// Customers and entries on a page.
const CUSTOMERS: usize = 30;
const ENTRIES: usize = 50;
/// Accounts that are shown; all of them are counted.
const ACCOUNTS: usize = 200;
/// How long the books may be compared while somebody waits for the page.
const CHECK_WITHIN: Duration = Duration::from_mins(1);
/// Differences and warnings that are shown; all of them are counted.
const FOUND: usize = 100;

#[derive(Template)]
#[template(path = "console/balances.html")]
struct BalancesPage {
    f: Frame,
    /// Whom somebody looked for.
    q: String,
    rows: Vec<BalanceRow>,
}

struct BalanceRow {
    tenant: String,
    customer: String,
    amount: String,
    is_negative: bool,
    is_test: bool,
    lines: i64,
}

impl BalanceRow {
    fn of(sum: &Sum) -> Self {
        let balance = balance_of(&sum.account, sum.amount);
        let (tenant, customer) = customer_of(&sum.account).unwrap_or_default();
        Self {
            tenant: tenant.unwrap_or_default(),
            customer: customer.to_owned(),
            amount: show::money(balance, &sum.currency),
            is_negative: balance < 0,
            is_test: sum.livemode == Some(false),
            lines: sum.lines,
        }
    }
}

#[derive(Template)]
#[template(path = "console/balance.html")]
struct BalancePage {
    f: Frame,
    tenant: String,
    customer: String,
    balances: Vec<BalanceRow>,
    entries: Vec<EntryRow>,
    next: Option<i64>,
}

struct EntryRow {
    at: Time,
    cause: String,
    amount: String,
    is_negative: bool,
    is_test: bool,
    payment: String,
}

#[derive(Template)]
#[template(path = "console/books.html")]
struct BooksPage {
    f: Frame,
    is_balanced: bool,
    totals: Vec<TotalRow>,
    accounts: Vec<AccountRow>,
    /// Accounts that are not shown.
    more: usize,
    report: Option<Report>,
}

struct TotalRow {
    currency: String,
    mode: &'static str,
    sum: String,
    is_balanced: bool,
}

struct AccountRow {
    account: String,
    /// Where a customer's is shown.
    link: Option<String>,
    mode: &'static str,
    balance: String,
    lines: i64,
}

/// What the comparison found.
struct Report {
    payments: u64,
    lines: u64,
    accounts: u64,
    differences: Vec<String>,
    warnings: Vec<String>,
    is_sound: bool,
}

/// Customers whose balance moved lately; any other is found by its id.
async fn list(visit: Visit) -> Answer {
    let (store, q) = (&*visit.console.store, visit.text("q"));
    let accounts = match &q {
        Some(customer) => {
            let found = view::find_balances(store, customer).await?;
            if let [] | [_] = &found[..] {
                let tenant = found.first().and_then(|one| one.tenant.as_deref());
                return Ok(Reply::Go { to: address(tenant, customer), flash: None });
            }
            found.iter().map(|one| customer_account(one.tenant.as_deref(), customer)).collect()
        }
        None => moved_lately(store).await?,
    };
    let mut rows = Vec::new();
    for account in accounts {
        let sums = store.find_sums(Some(account)).await?;
        rows.extend(sums.iter().map(BalanceRow::of));
    }
    let f = visit.frame("balances", visit.lang.t("Balances", "残高"));
    Reply::page(&BalancesPage { f, q: q.unwrap_or_default(), rows })
}

/// The accounts of the customers whose balance moved last.
async fn moved_lately(store: &dyn Store) -> Result<Vec<String>, Trouble> {
    let newest = store.find_lines(LineFilter { limit: FIND_MAX, ..LineFilter::default() }).await?;
    let accounts = newest.into_iter().map(|line| line.posting.account);
    let mut seen = BTreeSet::new();
    let fresh = accounts.filter(|account| customer_of(account).is_some() && seen.insert(account.clone()));
    Ok(fresh.take(CUSTOMERS).collect())
}

/// Where the balance of a customer is shown.
pub fn address(tenant: Option<&str>, customer: &str) -> String {
    let tenant = tenant.map(|tenant| format!("?tenant={}", percent(tenant))).unwrap_or_default();
    format!("/console/balances/{}{tenant}", percent(customer))
}

async fn show(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let (customer, tenant) = (&*visit.id, visit.text("tenant"));
    let known = match view::find_balance(store, tenant.as_deref(), customer).await {
        Err(Refusal::Conflict(_)) => {
            return Ok(Reply::Go { to: format!("/console/balances?q={}", percent(customer)), flash: None });
        }
        known => known?,
    };
    let Some(known) = known else {
        return Reply::failed(
            "/console/balances",
            match visit.lang {
                Language::En => format!("Nothing is known of a customer {customer}."),
                Language::Ja => format!("顧客 {customer} は見つかりません。"),
            },
        );
    };
    let tenant = known.tenant.as_deref();
    let account = customer_account(tenant, customer);
    let before = visit.param("before").map(str::parse).transpose();
    let before = before.map_err(|_| Trouble::wrong("before: it is no number".into()))?;
    let filter =
        LineFilter { account: Some(account.clone()), before, limit: ENTRIES, ..LineFilter::default() };
    let lines = store.find_lines(filter).await?;
    let next = lines.last().filter(|_| lines.len() == ENTRIES).map(|line| line.number);
    let sums = store.find_sums(Some(account)).await?;
    Reply::page(&BalancePage {
        f: visit.frame("balances", visit.lang.t("Balance", "残高")),
        tenant: tenant.unwrap_or_default().to_owned(),
        customer: customer.to_owned(),
        balances: sums.iter().map(BalanceRow::of).collect(),
        entries: lines.iter().map(entry).collect(),
        next,
    })
}

async fn books(visit: Visit) -> Answer {
    let _alone = visit.alone()?;
    page(&visit, None).await
}

async fn check(visit: Visit) -> Answer {
    let _alone = visit.alone()?;
    let comparing = queries::check_books(&*visit.console.store);
    let Ok(report) = tokio::time::timeout(CHECK_WITHIN, comparing).await else {
        let text = visit.lang.t(
            "There are too many payments to compare them while you wait: run `sekisho books check` at a terminal.",
            "件数が多いため画面上では照合できません。ターミナルで `sekisho books check` を実行してください。",
        );
        return Reply::failed("/console/books", text);
    };
    let report = report?;
    let report = Report {
        payments: report.payments,
        lines: report.lines,
        accounts: report.accounts,
        differences: report.differences.iter().take(FOUND).map(ToString::to_string).collect(),
        warnings: report.warnings.iter().take(FOUND).map(ToString::to_string).collect(),
        is_sound: report.differences.is_empty(),
    };
    page(&visit, Some(report)).await
}

async fn page(visit: &Visit, report: Option<Report>) -> Answer {
    let sums = visit.console.store.find_sums(None).await?;
    let f = visit.frame("balances", visit.lang.t("Books", "帳簿"));
    let shown = view::books(&sums);
    Reply::page(&BooksPage {
        is_balanced: shown.balanced,
        totals: shown.totals.iter().map(|total| total_row(total, &f)).collect(),
        more: sums.len().saturating_sub(ACCOUNTS),
        accounts: sums.iter().take(ACCOUNTS).map(|sum| account(sum, &f)).collect(),
        report,
        f,
    })
}

fn total_row(total: &Total, f: &Frame) -> TotalRow {
    TotalRow {
        currency: total.currency.to_uppercase(),
        mode: mode(total.livemode, f),
        sum: show::money(total.sum, &total.currency),
        is_balanced: total.balanced,
    }
}

fn account(sum: &Sum, f: &Frame) -> AccountRow {
    AccountRow {
        account: sum.account.clone(),
        link: customer_of(&sum.account).map(|(tenant, customer)| address(tenant.as_deref(), customer)),
        mode: mode(sum.livemode, f),
        balance: show::money(balance_of(&sum.account, sum.amount), &sum.currency),
        lines: sum.lines,
    }
}

fn entry(line: &BookedLine) -> EntryRow {
    let posting = &line.posting;
    let amount = balance_of(&posting.account, posting.amount);
    EntryRow {
        at: line.at,
        cause: posting.cause.clone(),
        amount: show::money(amount, &posting.currency),
        is_negative: amount < 0,
        is_test: posting.livemode == Some(false),
        payment: posting.payment.clone(),
    }
}

fn mode(livemode: Option<bool>, f: &Frame) -> &'static str {
    match livemode {
        Some(true) => f.t("live", "本番"),
        Some(false) => f.t("test", "テスト"),
        None => "–",
    }
}

/// As a part of a path.
fn percent(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}
