//! Which claims may hold a lock together.

/// The claims with which a claim shares its lock.
///
/// ```
/// use lockattr::store::Sharing;
///
/// assert_eq!(Sharing::default(), Sharing::Exclusive);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// No other claim.
    #[default]
    Exclusive,
    /// Any number of other shared claims.
    Shared,
    /// Other claims with a permit: at most this many permits in all.
    Permits(u32),
}
