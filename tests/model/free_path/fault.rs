//! The faults that may happen around the protocol, here and in the model of the queue.

/// Each occurrence counts against the faults of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A process ends, and its connection with it.
    Kill,
    /// A process stops, or loses the network without the store noticing: its connection still
    /// counts.
    Stop,
    /// A request or its reply is lost, or arrives after the process has stopped waiting for it.
    Timeout,
    /// A grant's notification is lost.
    LoseGrant,
    /// The reply to a release is lost.
    LoseUndone,
    /// The connection of a process ends: what was on its way is lost, and grants do not reach it.
    Cut,
    /// An operator evicts the holders of a key.
    Evict,
    /// A program deletes a key by hand.
    Delete,
    /// The store loses everything, including its counter.
    Flush,
    /// Another program takes the first key with its own `SET NX` and a TTL.
    Intrude,
    /// The same without a TTL.
    IntrudeForever,
    /// The replica takes the place of the server, with what it has. Every connection ends; a reply
    /// of the old server may still arrive.
    Failover,
    /// The same, over connections that survive. Their processes learn of it.
    RoleChange,
    /// The same behind a proxy: connections survive, and no process is notified.
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
