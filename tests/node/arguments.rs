//! The command line of a node: one verb, then `name=value` words.

use std::collections::BTreeMap;
use std::str::FromStr;

/// The arguments of a node.
#[derive(Debug)]
pub(crate) struct Arguments {
    verb: String,
    values: BTreeMap<String, String>,
}

impl Arguments {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let verb = words.next().ok_or("a verb is missing: node VERB name=value …")?;
        let mut values = BTreeMap::new();
        for word in words {
            let (name, value) =
                word.split_once('=').ok_or_else(|| format!("`{word}` is not name=value"))?;
            if values.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(format!("`{name}` is given twice"));
            }
        }
        Ok(Self { verb, values })
    }

    pub(crate) fn verb(&self) -> &str {
        &self.verb
    }

    /// The value of `name`, or `default` when it was not given.
    pub(crate) fn get_or<T: FromStr>(&self, name: &str, default: T) -> Result<T, String> {
        match self.values.get(name) {
            Some(value) => {
                value.parse().map_err(|_| format!("`{name}={value}` does not fit its verb"))
            }
            None => Ok(default),
        }
    }
}
