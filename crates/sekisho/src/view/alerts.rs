//! Alerts and targets as they are shown: states and figures, put beside the table that says what they mean.

use std::collections::BTreeMap;

use sekisho_core::Time;
use sekisho_core::alert::{ALERTS, AlertName, AlertPolicy, AlertRule, AlertState, alert_id};
use sekisho_core::language::Language;
use sekisho_core::target::{MILLION, TargetFigure, TargetName, TargetPolicy, percent};
use sekisho_store::{Result, Store};

use crate::queries;
use crate::types::{AlertStanding, TargetStanding, TargetWindow};

/// Every alert of the table: those subjects of which something is known, those that fire first.
pub async fn alerts(
    store: &dyn Store,
    policy: &AlertPolicy,
    lang: Language,
    now: Time,
) -> Result<Vec<AlertStanding>> {
    let states = queries::alert_states(store).await?;
    let mut all: Vec<_> = ALERTS.iter().flat_map(|rule| of_rule(rule, &states, policy, lang, now)).collect();
    let rank = |one: &AlertStanding| match one.state.as_str() {
        "firing" => 0,
        "pending" => 1,
        _ => 2,
    };
    all.sort_by_key(rank);
    Ok(all)
}

fn of_rule(
    rule: &AlertRule,
    states: &BTreeMap<(AlertName, String), AlertState>,
    policy: &AlertPolicy,
    lang: Language,
    now: Time,
) -> Vec<AlertStanding> {
    let own = states.iter().filter(|((alert, _), _)| *alert == rule.name);
    let mut all: Vec<_> =
        own.map(|((_, subject), state)| alert(rule, subject, state, policy, lang, now)).collect();
    if all.is_empty() {
        all.push(alert(rule, "", &AlertState::default(), policy, lang, now));
    }
    all
}

pub fn alert(
    rule: &AlertRule,
    subject: &str,
    state: &AlertState,
    policy: &AlertPolicy,
    lang: Language,
    now: Time,
) -> AlertStanding {
    let threshold = policy.threshold(rule.name);
    let silence = state.silence.as_ref().filter(|_| state.is_silenced(now));
    let is_off = policy.is_off(rule.name, subject);
    AlertStanding {
        id: alert_id(rule.name, subject),
        name: rule.name.name().to_owned(),
        subject: Some(subject).filter(|subject| !subject.is_empty()).map(str::to_owned),
        state: if is_off { "off" } else { state.phase.name() }.to_owned(),
        since: state.since,
        value: Some(&state.value).filter(|value| !value.is_empty()).cloned(),
        fires_when: lang.t(rule.fires.0, rule.fires.1).replace("{}", &threshold),
        what_to_do: lang.t(rule.advice.0, rule.advice.1).to_owned(),
        threshold,
        incidents: state.incidents,
        told_at: state.told_at,
        silenced_until: silence.map(|silence| silence.until),
        silenced_by: silence.map(|silence| silence.by.clone()),
        silence_reason: silence.map(|silence| silence.reason.clone()),
    }
}

/// Every target over every window.
pub async fn targets(
    store: &dyn Store,
    policy: &TargetPolicy,
    lang: Language,
    now: Time,
) -> Result<Vec<TargetStanding>> {
    let figures = queries::target_figures(store, policy, now).await?;
    let covers = lang.t("all nodes, live and test together", "全ノード（本番とテストの合計）");
    let one = |target: TargetName| {
        let title = target.title();
        let own = figures.iter().filter(|(of, ..)| *of == target);
        TargetStanding {
            name: target.name().to_owned(),
            title: lang.t(title.0, title.1).to_owned(),
            target: wanted(target, policy),
            covers: covers.to_owned(),
            windows: own.map(|(_, window, figure)| window_of(target, window, figure)).collect(),
        }
    };
    Ok(TargetName::ALL.into_iter().map(one).collect())
}

fn wanted(target: TargetName, policy: &TargetPolicy) -> String {
    let wanted = target.wanted(policy);
    match target {
        TargetName::Publish | TargetName::Worker | TargetName::Mail => percent(wanted),
        TargetName::Retry => format!("< {}", percent(wanted)),
        TargetName::DeadLetters => format!("≤ {wanted}"),
    }
}

fn window_of(target: TargetName, window: &str, figure: &TargetFigure) -> TargetWindow {
    let value = figure.share().map(|share| match target {
        TargetName::Publish | TargetName::Worker | TargetName::Mail => percent(MILLION - share),
        TargetName::Retry => percent(share),
        TargetName::DeadLetters => figure.bad.to_string(),
    });
    TargetWindow {
        window: window.to_owned(),
        verdict: figure.verdict.name().to_owned(),
        value,
        bad: figure.bad,
        all: figure.all,
        budget_spent_percent: figure.budget_spent().filter(|_| target != TargetName::DeadLetters),
    }
}
