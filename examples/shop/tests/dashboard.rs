//! Checks that the shop exports every name in the queries of docs/grafana/.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::customer::{count, get, order};
use crate::running::Servers;

/// The words of an expression that are neither metrics nor labels.
const LANGUAGE: [&str; 11] = [
    "by",
    "clamp_min",
    "histogram_quantile",
    "label_values",
    "le",
    "min_over_time",
    "offset",
    "or",
    "rate",
    "sum",
    "unless",
];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All strings under one of these names, at any depth.
fn strings<'a>(value: &'a Value, names: &[&str], found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if names.contains(&name.as_str()) => found.push(text),
                    _ => strings(value, names, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| strings(value, names, found)),
        _ => {}
    }
}

/// The names in an expression, without quoted or bracketed text and dashboard variables.
fn names(expression: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut rest = expression;
    while let Some(character) = rest.chars().next() {
        let skipped = match character {
            '"' => 1 + rest[1..].find('"').expect("a quote ends") + 1,
            '[' => rest.find(']').expect("a bracket ends") + 1,
            'a'..='z' | 'A'..='Z' | '_' => {
                let end = word(rest);
                found.insert(&rest[..end]);
                end
            }
            '0'..='9' => word(rest),
            '$' => 1 + word(&rest[1..]),
            other => other.len_utf8(),
        };
        rest = &rest[skipped..];
    }
    found
}

/// The length of the word at the start of `rest`.
fn word(rest: &str) -> usize {
    rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len())
}

/// The metrics that the shop exports, and their labels.
fn printed(text: &str) -> BTreeSet<&str> {
    let samples = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut found = BTreeSet::new();
    for sample in samples {
        let (metric, rest) = sample.split_at(sample.find(['{', ' ']).expect("a value"));
        found.insert(metric);
        if let Some(labels) = rest.strip_prefix('{') {
            // The names are outside the quotes.
            let outside = labels.split('"').step_by(2);
            found.extend(outside.filter_map(|part| part.trim_start_matches(',').strip_suffix('=')));
        }
    }
    found
}

/// The expressions of the alerts: one line, or the indented lines below.
fn alerts(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(first) = line.trim_start().strip_prefix("expr: ") else { continue };
        let mut expression = first.replace('|', "");
        while let Some(next) = lines.next_if(|next| next.starts_with("          ")) {
            expression += next;
        }
        found.push(expression);
    }
    found
}

/// Red without: any metric or label that a query names.
#[tokio::test]
async fn the_dashboard_and_the_alerts_query_metrics_that_exist() {
    let servers = Servers::start().await;
    let shop = servers.shop(4_000).await;
    count(&shop.address, 7, 20).await;
    // Long enough for a renewal.
    order(&shop.address, 7).await;
    let metrics = get(&shop.address, "/metrics").await.text;
    let printed = printed(&metrics);

    let dashboard: Value = serde_json::from_str(&read("lockattr.json")).unwrap();
    let (mut queries, alerts) = (Vec::new(), alerts(&read("alerts.yml")));
    strings(&dashboard, &["expr", "definition", "query"], &mut queries);
    queries.retain(|query| query.contains("lockattr_"));
    assert!(queries.len() >= 13 && alerts.len() == 8, "{queries:#?} {alerts:#?}");
    let mut asked_for = BTreeSet::new();
    for query in queries.into_iter().chain(alerts.iter().map(String::as_str)) {
        for name in names(query).into_iter().filter(|name| !LANGUAGE.contains(name)) {
            assert!(
                printed.contains(name),
                "no {name} is printed, but asked for: {query}\n{metrics}"
            );
            asked_for.insert(name);
        }
    }
    // The dashboard also shows every exported metric.
    let ours = printed.iter().filter(|name| name.starts_with("lockattr_"));
    for metric in ours
        .filter(|name| !name.ends_with("_sum") && !name.ends_with("wait_duration_seconds_count"))
    {
        assert!(asked_for.contains(metric), "nobody asks for {metric}");
    }
}
