//! Mistakes in the protocol, each with the rule that it leaves out.

/// A rule of the protocol that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    // A pair counts only as a whole, and within its own lease.
    /// A redirected `SET` is sent again, and counts with the token that was given before it.
    RetriesHalf,
    /// A pair counts whatever the reply to its `SET` is.
    IgnoresTheSet,
    /// The reply to a pair counts after its lease has ended.
    IgnoresTheLease,

    // A lock that has waiters lives until the later of its lease and its queue, and every look
    // prolongs both. A claim for several keys marks or reserves each.
    /// The first waiter leaves the lock as it is.
    MarksNothing,
    /// A marked lock ends with its lease.
    MarkEndsWithLease,
    /// A marked lock ends with its queue.
    MarkEndsWithQueue,
    /// A renewal makes a marked lock end with its lease.
    RenewalForgetsQueue,
    /// A release that keeps the lock for a time (`hold_at_least`) makes the key end with that time.
    KeepingForgetsQueue,
    /// A shared lock ends with its last lease.
    SetForgetsQueue,
    /// Asking again prolongs neither lock nor queue.
    RecheckProlongsNothing,
    /// A claim for several keys does not reserve the free ones.
    ReservesNothing,
    /// Any claim that leaves a queue removes the mark, even if others wait.
    LeaverUnmarks,
    /// The last claim to leave a queue deletes the marked lock, which another claim holds.
    LastFreesAnothers,

    // A value other than the plain one means: ask the script.
    /// A lean release that finds another value treats the lock as lost.
    NotEqualIsLost,
    /// A renewal that finds another value than the plain one treats the lock as lost.
    MarkedIsLost,

    // Whatever removes a lock that has waiters leaves a reservation, and reads remove nothing.
    /// A quiet release leaves no reservation.
    QuietLeavesNothing,
    /// The release of the last claim that shares leaves no reservation.
    LastSharerLeavesNothing,
    /// A renewal removes expired leases, and the key with the last one.
    RenewalPrunes,
    /// A read removes expired leases, and the key with the last one.
    ReadPrunes,

    // The flag belongs to a connection and a counter, and only a token by the clock sets it.
    /// A new connection keeps the flag of the old one.
    NewConnectionKeepsFlag,
    /// A process that keeps its connection over a change of role keeps its flag.
    RoleKeepsFlag,
    /// The flag belongs to the process: a late reply of the old server sets it for the new one.
    LateAnswerSetsFlag,
    /// A script that queued the claim sets the flag.
    QueuedSetsFlag,
    /// A script that counted in one slot sets the flag for all slots.
    OneFlagForAllCounters,

    // A token that is below the floor, or not above one that was seen, is discarded: the script
    // raises the counter.
    /// Any token of an `INCR` counts.
    TokensUnchecked,
    /// A token counts even if this process has seen one as great.
    SeenUnchecked,
    /// Scripts add one to the last token, whatever the clock shows.
    IgnoresTheClock,

    // The time left is in the mark. A reservation has no holder, and a lock without an end has one.
    /// The time left of a marked lease is read from the end of its key.
    LeftFromExpiry,
    /// A lock of another program that has no TTL is treated as expired.
    ForeverIsOver,
    /// A reservation, or a mark with an expired lease, is treated as held.
    ReservationIsHeld,

    // Adoption, hand-off, `extend` and `WAIT`.
    /// A claim that already has the lock, and sends its request to the script, is refused.
    AdoptsNothing,
    /// A claim that already has the lock, and sends its request to the script, has it for no longer than its TTL.
    AdoptionShortens,
    /// A holder hands its lease off after it has ended.
    HandsOffTooLate,
    /// A renewal shortens a lease that `extend` has made longer.
    RenewalShortens,
    /// A lease counts before the replica has it.
    DoesNotWait,
}
