//! The cause of an error, in words that are safe to print.

use std::error::Error;
use std::fmt;
use std::iter::successors;

use super::StoreError;
use crate::lock::printable::printable;

/// An error of a driver, and beside it what is shown of it: a server chose some of its words.
#[derive(Debug)]
pub(super) struct Cause {
    pub(super) error: Box<dyn Error + Send + Sync>,
    pub(super) shown: Shown,
}

impl Cause {
    pub(super) fn new(error: Box<dyn Error + Send + Sync>) -> Self {
        let shown = Shown::of(&*error);
        Self { error, shown }
    }
}

/// The [printable] text of an error and of its causes.
pub(super) struct Shown {
    text: String,
    cause: Option<Box<Self>>,
}

impl Shown {
    fn of(error: &(dyn Error + 'static)) -> Self {
        let cause = error.source().map(|cause| Box::new(Self::of(cause)));
        Self { text: printable(&error.to_string()).into_owned(), cause }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

impl Error for Shown {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

/// The error and its causes, as the drivers made them.
pub(crate) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let next = |error: &&'a (dyn Error + 'static)| -> Option<&'a (dyn Error + 'static)> {
        let error = *error;
        match error.downcast_ref::<StoreError>() {
            Some(store) => store.source.as_deref().map(|cause| &*cause.error as _),
            None => error.source(),
        }
    };
    successors(Some(error), next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::error::Error as LockError;

    const RAW: &str = "no\u{1b}[2Jsuch\u{202e}table\r\nok: all is well";

    #[derive(Debug, thiserror::Error)]
    #[error("{RAW}")]
    struct Driver(#[source] std::io::Error);

    /// Red without: `printable` in `Shown::of`.
    #[test]
    fn what_a_server_says_is_printable_in_each_cause() {
        let driver = Driver(std::io::Error::other(RAW));
        let inner = StoreError::new(RAW).with_source(driver);
        let error = StoreError::new("a request failed").with_source(inner).about("a");
        let mut texts = Vec::new();
        let mut next: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(error) = next {
            texts.extend([error.to_string(), format!("{error:?}")]);
            next = error.source();
        }
        assert_eq!(texts.len(), 2 * 5, "{texts:?}");
        for text in texts {
            assert_eq!(printable(&text), text);
        }
    }

    /// Red without: the step from a `StoreError` to its driver's error.
    #[test]
    fn a_program_finds_the_error_of_the_driver_below_each_sentence() {
        let driver = Driver(std::io::Error::other(RAW));
        let error = StoreError::new("a").with_source(StoreError::new("b").with_source(driver));
        assert!(error.downcast_ref::<Driver>().is_some());
        assert!(error.downcast_ref::<std::io::Error>().is_some());
        assert!(error.downcast_ref::<fmt::Error>().is_none());
        let LockError::Store { source, .. } = error.about("a") else { panic!("it is `Store`") };
        assert!(causes(&source).any(<dyn Error>::is::<Driver>));
    }
}
