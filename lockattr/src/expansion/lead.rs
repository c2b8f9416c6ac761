//! A function that leads: its body runs once for each term.

use super::{Call, printed};
use crate::{Error, Term};

/// Campaigns for the lock that `call` names, and runs `term` under it.
pub async fn lead<F: Future>(call: Call, term: impl FnMut(Term) -> F) -> Result<F::Output, Error> {
    let Call { key, options, manager, .. } = call;
    let manager = manager.chosen()?;
    let options = options.resolve_lead(manager.settings())?;
    // Boxed, or the caller's future would contain the whole campaign.
    Box::pin(manager.lead_on(&options, &printed(key)?, term)).await
}

/// Arguments of a function that leads: each of its terms has its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a function that leads",
    label = "each term needs its own: make it `Clone`, or pass it by shared reference or in an `Arc`"
)]
pub trait PerTerm {
    /// The value for one term.
    fn for_term(&self) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Clone> PerTerm for T {
    fn for_term(&self) -> Self {
        self.clone()
    }
}

/// The value of an argument for the term that begins.
pub fn for_this_term<T: PerTerm>(argument: &T) -> T {
    argument.for_term()
}
