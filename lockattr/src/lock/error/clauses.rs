//! The clauses of error messages that depend on what is known.

use std::fmt;

use crate::Holder;
use crate::lock::printable::printable;

pub(super) struct Named<'a>(pub(super) Option<&'a Holder>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(holder) => holder.fmt(f),
            None => f.write_str("another holder"),
        }
    }
}

pub(super) struct Circle<'a> {
    pub(super) circle: &'a [(String, Holder)],
    pub(super) holds: &'a str,
}

impl fmt::Display for Circle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (key, holder)) in self.circle.iter().enumerate() {
            let key = printable(key);
            match nth {
                0 => write!(f, "`{key}` is held by {holder}")?,
                _ => write!(f, ", which waits for `{key}`, held by {holder}")?,
            }
        }
        write!(
            f,
            ", which waits for `{}`, held by this call chain: a deadlock; release what is held \
             and try again, and acquire these locks in one order everywhere, or together with \
             `keys`",
            printable(self.holds)
        )
    }
}

pub(super) struct Unreachable<'a>(pub(super) &'a str);

impl fmt::Display for Unreachable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("the store could not be reached"),
            key => write!(f, "the request to the store for `{}` failed", printable(key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::time::Duration;

    use crate::Holder;
    use crate::lock::error::{Error, LostReason, StoreError};
    use crate::lock::printable::printable;
    use crate::store::LockKey;

    /// It clears the terminal, turns the text around, and begins a line of its own in a log.
    const KEY: &str = "a\u{1b}[2Jb\u{202e}c\nd";
    const SHOWN: &str = "a�[2Jb�c�d";

    fn all() -> Vec<Error> {
        let (key, holder) = (KEY.to_owned(), Holder::from_value("service=orders", None));
        let waited = Duration::from_secs(1);
        vec![
            Error::Contended { key: key.clone(), attempts: 1, waited, holder: None },
            Error::Deadlock {
                key: key.clone(),
                circle: vec![(key.clone(), holder.clone()), (key.clone(), holder)],
                holds: key.clone(),
            },
            Error::Lost { key: key.clone(), reason: LostReason::Expired },
            StoreError::new(format!("the key `{KEY}` is not a lock")).about(KEY),
            Error::Reentered { key: key.clone() },
            Error::ShutDown { key: key.clone() },
            Error::NoManagerNamed { name: key.clone() },
            LockKey::new("lock:", &KEY.repeat(1000)).unwrap_err(),
            StoreError::new(format!("`{KEY}` cannot be locked")).invalid().about(KEY),
        ]
    }

    /// Red without: `printable` in any of the messages.
    #[test]
    fn the_text_of_an_error_moves_no_other_text_and_its_key_is_as_it_was() {
        for error in all() {
            let source = error.source().map(ToString::to_string).unwrap_or_default();
            for text in [error.to_string(), source] {
                assert_eq!(printable(&text), text);
                assert!(text.is_empty() || text.contains(SHOWN), "{text}");
            }
            assert!(error.key().is_none_or(|key| key == KEY), "{error:?}");
        }
        assert_eq!(all().iter().filter(|error| error.key().is_some()).count(), 6);
    }
}
