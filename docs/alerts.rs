//! The alerts are one list: `grafana/alerts.yml`, the table in `observability.md` and the pages in
//! `runbooks/` name the same, and what they name exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The first part of each `runbook_url`.
const HOSTED: &str = "https://github.com/lockattr/lockattr/blob/main/";

/// What each runbook has, in this order.
const SECTIONS: [&str; 6] = [
    "## How bad it is",
    "## Look here first",
    "## Causes, most likely first",
    "## What to do",
    "## Never",
    "## It is over when",
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The alerts, each with the page that its `runbook_url` names.
fn alerts() -> Vec<(String, String)> {
    let text = read("docs/grafana/alerts.yml");
    let alerts = text.split("- alert: ").skip(1).map(|alert| {
        let name = alert.lines().next().expect("a name").trim().to_owned();
        let urls = alert.lines().filter_map(|line| line.trim().strip_prefix("runbook_url: "));
        let urls: Vec<_> =
            urls.map(|url| url.strip_prefix(HOSTED).expect(url).to_owned()).collect();
        let [page] = &urls[..] else { panic!("{name} has {} runbooks", urls.len()) };
        (name, page.clone())
    });
    alerts.collect()
}

fn names() -> Vec<String> {
    alerts().into_iter().map(|(name, _)| name).collect()
}

/// The text between ticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The first cells of the rows below a heading, up to the next heading.
fn first_cells(page: &str, heading: &str) -> Vec<String> {
    let section = page.split(heading).nth(1).expect(heading).split("\n## ").next().expect(heading);
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| quoted(row).remove(0)).collect()
}

fn runbooks() -> Vec<String> {
    let entries = fs::read_dir(path("docs/runbooks")).expect("the runbooks");
    let names =
        entries.map(|entry| entry.expect("a page").file_name().to_string_lossy().into_owned());
    names.filter(|name| name != "README.md").map(|name| format!("docs/runbooks/{name}")).collect()
}

/// Red without: any row of the table, or any alert.
#[test]
fn the_table_of_alerts_is_the_list_of_rules() {
    let page = read("docs/observability.md");
    let table = first_cells(&page, "\n## Alerts");
    assert_eq!(table, names());
    let guide = read("docs/guide/12-observing.md");
    assert!(guide.contains("(../observability.md#alerts)"), "the guide leads to the table");
    for name in names() {
        assert!(!guide.contains(&name), "{name} is listed a second time in the guide");
    }
}

/// Red without: the line `**Alerts:**` of any runbook, or any `runbook_url`.
#[test]
fn each_alert_leads_to_the_runbook_that_names_it() {
    for runbook in runbooks() {
        let page = read(&runbook);
        let line = page.lines().find(|line| line.starts_with("**Alerts:**")).expect(&runbook);
        let leads_here = alerts().into_iter().filter(|(_, page)| *page == runbook);
        let leads_here: BTreeSet<_> = leads_here.map(|(name, _)| name).collect();
        assert!(!leads_here.is_empty(), "no alert leads to {runbook}");
        assert_eq!(quoted(line).into_iter().collect::<BTreeSet<_>>(), leads_here, "{runbook}");
        let index = read("docs/runbooks/README.md");
        let row =
            index.lines().find(|line| line.contains(runbook.trim_start_matches("docs/runbooks/")));
        let row = quoted(row.expect(&runbook)).into_iter().collect::<BTreeSet<_>>();
        assert_eq!(row, leads_here, "{runbook} in the index");
    }
    for (name, page) in alerts() {
        assert!(runbooks().contains(&page), "{name} leads to {page}, which is not there");
    }
}

/// Red without: any of the sections of a runbook.
#[test]
fn each_runbook_has_the_same_sections() {
    for runbook in runbooks() {
        let page = read(&runbook);
        let found: Vec<_> = page.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(found, SECTIONS, "{runbook}");
    }
}

/// The sources of the library, without their line breaks inside of strings.
fn sources() -> String {
    fn walk(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, text);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&fs::read_to_string(&path).expect("a source"));
            }
        }
    }
    let mut text = String::new();
    walk(&path("lockattr/src"), &mut text);
    text
}

/// The log lines that the runbooks quote are in the tables with the heads `line`.
///
/// Red without: any of the quoted texts in the sources.
#[test]
fn the_runbooks_quote_lines_that_the_library_logs() {
    let sources = sources();
    let mut lines = 0;
    for runbook in runbooks() {
        let page = read(&runbook);
        let mut in_table = false;
        for row in page.lines().map(str::trim) {
            in_table = row.starts_with("| line |") || (in_table && row.starts_with('|'));
            if in_table
                && let Some(line) = row.strip_prefix("| `").and_then(|row| row.split('`').next())
            {
                assert!(sources.contains(line), "{runbook} quotes {line:?}, which nobody logs");
                lines += 1;
            }
        }
    }
    assert!(lines >= 8, "{lines} lines are quoted");
}

/// The values of `outcome` in the expressions of a file: `outcome="a"`, `outcome=~"a|b"`.
fn outcomes(text: &str) -> BTreeSet<String> {
    let text = text.replace("\\\"", "\"");
    let values = text.split("outcome").skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix("=~").or(rest.strip_prefix("!=")).or(rest.strip_prefix('='))?;
        Some(rest.strip_prefix('"')?.split('"').next()?.to_owned())
    });
    values.flat_map(|value| value.split('|').map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Red without: any row of the tables of outcomes that a query asks for.
#[test]
fn the_queries_ask_for_outcomes_that_are_documented() {
    let page = read("docs/observability.md");
    let metrics = page.split("\n## The span").next().expect("the metrics");
    let documented: BTreeSet<_> = metrics
        .lines()
        .filter(|line| line.starts_with("| `"))
        .flat_map(|line| quoted(line.split(" | ").next().expect("a cell")))
        .collect();
    let pages = runbooks()
        .into_iter()
        .chain(["docs/grafana/alerts.yml".into(), "docs/grafana/lockattr.json".into()]);
    let mut asked_for = BTreeSet::new();
    for page in pages {
        for outcome in outcomes(&read(&page)) {
            assert!(documented.contains(&outcome), "{page} asks for the outcome {outcome:?}");
            asked_for.insert(outcome);
        }
    }
    assert!(asked_for.len() >= 7, "{asked_for:?}");
}

/// Red without: any metric of the table that a runbook's query names.
#[test]
fn the_runbooks_query_metrics_that_are_documented() {
    let page = read("docs/observability.md");
    let printed = ["_count", "_bucket", "_sum"];
    for runbook in runbooks() {
        let text = read(&runbook);
        for rest in text.split("lockattr_").skip(1) {
            let end =
                rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_')).unwrap_or(rest.len());
            let name = format!("lockattr_{}", &rest[..end]);
            let base = printed.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(&name);
            assert!(page.contains(&format!("`{base}`")), "{runbook}: {name} is not documented");
        }
    }
}
