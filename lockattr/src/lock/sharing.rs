//! With whom a lock is shared.

/// With whom a claim shares its lock.
///
/// ```
/// use lockattr::store::Sharing;
///
/// assert_eq!(Sharing::default(), Sharing::Exclusive);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// With no other holder.
    #[default]
    Exclusive,
    /// With any number of others that share.
    Shared,
    /// With others that take a permit, at most so many of them altogether.
    Permits(u32),
}
