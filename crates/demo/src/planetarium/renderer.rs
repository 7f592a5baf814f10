//! Whoever makes the videos: takes a while, fails for some, and says so with the token of the run.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::House;
use super::programme::VisitorCourse;
use crate::server::locked;

const TAKES: Duration = Duration::from_millis(150);

pub(super) async fn render(house: &Arc<House>, event: &Value) {
    let about = &event["about"];
    let told =
        || Some((about["run"].as_u64()?, about["result_url"].as_str()?, about["result_token"].as_str()?));
    let Some((run, url, token)) = told() else { return };
    let Some(n) = locked(&house.ledger).whose(event) else { return };
    tokio::time::sleep(TAKES).await;
    let fails = match house.programme.visitors[n].course {
        VisitorCourse::NeverMade => true,
        VisitorCourse::FailsOnce => run == 1,
        VisitorCourse::Keeps | VisitorCourse::Abandons | VisitorCourse::PaysLate | VisitorCourse::Cancels => {
            false
        }
    };
    let result = if fails {
        json!({ "run": run, "status": "failed", "error": "out of memory" })
    } else {
        json!({ "run": run, "status": "done", "url": format!("https://cdn.example.test/{n}-{run}.mp4") })
    };
    let path = url.find("/v1/").map_or(url, |at| &url[at..]);
    let headers = vec![("authorization".to_owned(), format!("Bearer {token}"))];
    let say = || async {
        let answer = house.ask("POST", path, headers.clone(), result.to_string()).await?;
        (answer.status < 500).then_some(answer.status)
    };
    if house.until_answered(say).await == Some(200) {
        let visitor = &mut locked(&house.ledger).visitors[n];
        if fails {
            visitor.failed_runs.insert(run);
        } else {
            visitor.is_made = true;
        }
    }
}
