//! A site: the kind of lock, and where in the code it is acquired. The same for all keys of one
//! template.

use std::fmt;
use std::panic::Location;

/// A lock as the code names it: its template, and its place in the source.
///
/// There are as many sites as annotated functions, however many keys are locked. So metrics have a
/// label for each site, and the lock order is defined on sites.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) template: &'static str,
    pub(crate) location: &'static Location<'static>,
}

/// `` `product:<id>` at src/shop.rs:17 ``
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { template, location } = self;
        write!(f, "`{template}` at {}:{}", location.file(), location.line())
    }
}
