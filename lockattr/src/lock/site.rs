//! What kind of lock is asked for, and where in the code: the same for all keys of one template.

use std::fmt;
use std::panic::Location;

/// A lock as the code names it: its template, and the place where it stands.
///
/// Of these there are as many as there are annotated functions, however many keys are locked: what
/// metrics are labelled by, and what the order of locks is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) template: &'static str,
    pub(crate) place: &'static Location<'static>,
}

/// `` `product:<id>` at src/shop.rs:17 ``
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { template, place } = self;
        write!(f, "`{template}` at {}:{}", place.file(), place.line())
    }
}
