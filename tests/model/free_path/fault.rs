//! What may go wrong around the protocol.

/// Each time counts against the faults of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A process ends, and its connection with it.
    Kill,
    /// A process stops, or is cut off in a way that the store does not notice: its connection counts.
    Stop,
    /// A question or its answer is lost, or comes after the process has turned to other things.
    Timeout,
    /// A grant's notification is lost.
    LoseGrant,
    /// The answer to a release is lost.
    LoseUndone,
    /// The connection of a process ends: what was on its way is lost, and no grant is heard.
    Cut,
    /// An operator evicts the holders of a key.
    Evict,
    /// A program deletes a key by hand.
    Delete,
    /// The store forgets everything, its counter too.
    Flush,
    /// Another program takes the first key by a `SET NX` of its own: with a TTL.
    Intrude,
    /// The same without a TTL.
    IntrudeForever,
    /// The replica takes the place of the server, with what it has. Every connection ends; an answer that the old
    /// server gave may still be heard.
    Failover,
    /// The same, over connections that live on. Their processes learn of it.
    RoleChange,
    /// The same behind a proxy: connections live on, and no process is notified.
    Swap,
    /// The `SET` of a pair is redirected, and the `INCR` is executed.
    RedirectSet,
    /// The `SET` of a pair is executed, and the `INCR` is redirected.
    RedirectIncrement,
}

/// A message is lost, or comes late.
pub(crate) const OF_MESSAGES: &[Fault] =
    &[Fault::Timeout, Fault::LoseGrant, Fault::LoseUndone, Fault::Cut];

/// Faults of processes, of messages and of connections.
pub(crate) const OF_PROCESSES: &[Fault] =
    &[Fault::Kill, Fault::Stop, Fault::Timeout, Fault::LoseGrant, Fault::LoseUndone, Fault::Cut];

/// All faults that a single server can have.
pub(crate) const ALL: &[Fault] = &[
    Fault::Kill,
    Fault::Stop,
    Fault::Timeout,
    Fault::LoseGrant,
    Fault::LoseUndone,
    Fault::Cut,
    Fault::Evict,
    Fault::Delete,
    Fault::Flush,
    Fault::Intrude,
    Fault::IntrudeForever,
    Fault::RedirectSet,
    Fault::RedirectIncrement,
];
