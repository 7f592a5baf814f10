//! What is told of one case, or of one firing of an alert, belongs to one incident: a pager folds it together, and closes it when
//! it is over.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Notice;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// The same for everything that is told of one episode of a case, or of one firing of an alert.
    pub key: String,
    /// Nothing is left to do.
    pub is_over: bool,
}

impl Incident {
    /// The incident that an announcement of ours belongs to.
    pub fn of(event_type: &str, body: &Value) -> Option<Self> {
        let is_over = match event_type {
            "case.raised" | "case.overdue" | "case.acknowledged" => false,
            "case.resolved" => true,
            "alert.fired" | "alert.repeated" | "alert.resolved" => {
                let key = body["about"]["incident"].as_str()?.to_owned();
                return Some(Self { key, is_over: event_type == "alert.resolved" });
            }
            _ => return None,
        };
        let (case, episode) = (body["data"]["id"].as_str()?, body["data"]["episode"].as_u64()?);
        Some(Self { key: format!("{case}/{episode}"), is_over })
    }
}

impl Notice {
    pub fn incident(&self) -> Option<Incident> {
        serde_json::from_value::<Option<Incident>>(self.data["incident"].clone()).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn f5_what_is_told_of_a_case_is_one_incident_and_only_resolving_ends_it() {
        let body = json!({ "data": { "id": "case_1", "episode": 2 } });
        let of = |event_type: &str| Incident::of(event_type, &body);
        for open in ["case.raised", "case.overdue", "case.acknowledged"] {
            assert_eq!(of(open), Some(Incident { key: "case_1/2".into(), is_over: false }), "{open}");
        }
        assert_eq!(of("case.resolved"), Some(Incident { key: "case_1/2".into(), is_over: true }));
        assert_eq!(of("payment.paid"), None);
    }

    #[test]
    fn h4_all_that_is_told_of_an_alert_has_its_incident_and_its_end_ends_it() {
        let body = json!({ "about": { "incident": "alert/dead_letters/to:app/3" } });
        for (event_type, is_over) in
            [("alert.fired", false), ("alert.repeated", false), ("alert.resolved", true)]
        {
            let incident = Incident { key: "alert/dead_letters/to:app/3".into(), is_over };
            assert_eq!(Incident::of(event_type, &body), Some(incident), "{event_type}");
        }
    }
}
