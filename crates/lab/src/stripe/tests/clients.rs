//! The fake is good enough for Stripe's own libraries: they read its answers, pages and errors as they read Stripe's.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use super::*;

#[test]
fn e1_stripes_node_library_reads_the_fake() {
    let folder = tempfile::tempdir().unwrap();
    // Node looks for libraries beside the file, so both get a place of their own.
    let file = folder.path().join("clients.mjs");
    std::fs::write(&file, include_str!("clients.mjs")).unwrap();
    let libraries = from_check("SEKISHO_TEST_NODE_APPS").join("node_modules");
    symlink(libraries, folder.path().join("node_modules")).unwrap();
    check(Command::new("node").arg(file));
}

#[test]
fn e1_stripes_python_library_reads_the_fake() {
    let program = from_check("SEKISHO_TEST_PYTHON");
    check(Command::new(program).args(["-c", include_str!("clients.py")]));
}

fn check(client: &mut Command) {
    let stripe = Stripe::start().unwrap();
    let sold = stripe.sell(1200, "jpy", json!({}));
    stripe.sell(700, "jpy", json!({}));
    stripe.order_for("POST /v1/refunds", StripeFault::RateLimited { retry_after_s: None });
    let output = client.args([&stripe.url(), KEY, &sold.payment_intent]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let types = ["charge.refunded", "refund.created", "charge.succeeded", "charge.succeeded"];
    let expected = json!({
        "limited": ["RateLimitError", "rate_limit"],
        "first": ["succeeded", 400, "r/1"],
        "is_same": true,
        "listed": [400],
        "other_parameters": ["IdempotencyError", ""],
        "rest": 800,
        "already": ["InvalidRequestError", "charge_already_refunded"],
        "missing": ["InvalidRequestError", "resource_missing"],
        "unauthorized": ["AuthenticationError", ""],
        "types": types,
    });
    assert_eq!(seen, expected);
    assert_eq!(stripe.ledger().works_by_key(), [("k1", 1), ("k2", 1)].into());
}

fn from_check(variable: &str) -> PathBuf {
    let Some(path) = std::env::var_os(variable) else {
        panic!("{variable} is not set. Run ./check: it installs the libraries of examples/ and sets it.")
    };
    path.into()
}
