//! Selects keys: by a glob, or by a part of the name.

use std::convert::Infallible;
use std::str::FromStr;

use wildmatch::WildMatch;

/// With `*` or `?`, the whole key has to match, as in Redis; any other text matches the keys that
/// contain it.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Part(String),
    Glob(WildMatch),
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        if text.contains(['*', '?']) {
            Self::Glob(WildMatch::new(text))
        } else {
            Self::Part(text.to_owned())
        }
    }

    pub(crate) fn matches(&self, key: &str) -> bool {
        match self {
            Self::Part(part) => key.contains(part),
            Self::Glob(glob) => glob.matches(key),
        }
    }
}

impl FromStr for Pattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[track_caller]
    fn check(pattern: &str, matched: &[&str], others: &[&str]) {
        let pattern = Pattern::new(pattern);
        assert!(matched.iter().all(|key| pattern.matches(key)), "{pattern:?}");
        assert!(!others.iter().any(|key| pattern.matches(key)), "{pattern:?}");
    }

    #[test]
    fn a_glob_matches_the_whole_key_and_a_text_any_part_of_it() {
        check("", &["", "product:42"], &[]);
        check("duct", &["product:42"], &["order:42"]);
        check("product:*", &["product:", "product:42"], &["my-product:42"]);
        check("*:4?", &["product:42"], &["product:4", "product:421"]);
    }
}
