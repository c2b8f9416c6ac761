//! Files of comma-separated values in `results/`.

use std::fs;
use std::path::PathBuf;

pub(super) fn results() -> PathBuf {
    let results = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("results");
    fs::create_dir_all(&results).expect("results/ can be made");
    results
}

/// One file. Its first column is the name of the line's row.
pub(super) struct Csv {
    path: PathBuf,
    head: &'static str,
    lines: Vec<(String, String)>,
}

impl Csv {
    /// Reads the existing file. A row that is measured again replaces its lines.
    pub(super) fn open(name: &str, head: &'static str) -> Self {
        let path = results().join(name);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let old = text.lines().skip(1).filter_map(|line| {
            let (row, _) = line.split_once(',')?;
            Some((row.to_owned(), line.to_owned()))
        });
        Self { lines: old.collect(), path, head }
    }

    /// Drops the lines of `row` from earlier runs.
    pub(super) fn forget(&mut self, row: &str) {
        self.lines.retain(|(of, _)| of != row);
    }

    pub(super) fn push(&mut self, row: &str, fields: &[String]) {
        let fields: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
        self.lines.push((row.to_owned(), format!("{row},{}", fields.join(","))));
    }

    /// Sorts the rows by name, so that a run of one row changes only its lines.
    pub(super) fn write(&mut self) {
        self.lines.sort_by(|(a, _), (b, _)| a.cmp(b));
        let lines: Vec<&str> = self.lines.iter().map(|(_, line)| line.as_str()).collect();
        let text = format!("{}\n{}\n", self.head, lines.join("\n"));
        fs::write(&self.path, text).expect("results/ takes files");
    }
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field.to_owned()
}
