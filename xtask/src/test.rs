//! `cargo xtask test`: the servers first, then every test there is.

use crate::{child, servers};

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    servers::ensure_all()?;
    child::run(child::cargo(&["test", "--workspace", "--all-features"]).args(arranged(words)))
}

/// Cargo takes one filter before its `--`; the tests take any number behind it.
fn arranged(words: &[String]) -> Vec<&str> {
    let option = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
    let (filters, options) = words.split_at(option);
    let mut arranged: Vec<&str> = options.iter().map(String::as_str).collect();
    if !filters.is_empty() && !arranged.contains(&"--") {
        arranged.push("--");
    }
    arranged.extend(filters.iter().map(String::as_str));
    arranged
}

#[cfg(test)]
mod tests {
    use super::arranged;

    #[track_caller]
    fn check(words: &str, expected: &str) {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        assert_eq!(arranged(&words).join(" "), expected);
    }

    #[test]
    fn filters_go_behind_the_dashes_and_options_stay() {
        check("", "");
        check("lost", "-- lost");
        check("lost key", "-- lost key");
        check("-p lockattr lost", "-p lockattr lost");
        check("lost key -p lockattr", "-p lockattr -- lost key");
        check("lost --release -- --nocapture", "--release -- --nocapture lost");
    }
}
