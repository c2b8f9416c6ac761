//! The ways that are wrong, by the rule that each of them leaves out.

/// A mistake in the protocol. Each is a rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    // A pair counts only as a whole, and within its own lease.
    /// A redirected `SET` is sent again, and counts with the number that was counted before it.
    RetriesHalf,
    /// A pair counts whatever its `SET` was answered.
    IgnoresTheSet,
    /// The answer to a pair counts after its lease.
    IgnoresTheLease,

    // A lock that has waiters lives until the later of its lease and its queue, and every look prolongs both. A claim for several
    // keys marks or reserves each.
    /// The first waiter leaves the lock as it is.
    MarksNothing,
    /// A marked lock ends with its lease.
    MarkEndsWithLease,
    /// A marked lock ends with its queue.
    MarkEndsWithQueue,
    /// A renewal makes a marked lock end with its lease.
    RenewalForgetsQueue,
    /// A release that keeps the lock for a time makes it end then.
    KeepingForgetsQueue,
    /// A lock that is shared ends with its last lease.
    SetForgetsQueue,
    /// Asking again does not prolong lock and queue.
    LookProlongsNothing,
    /// A claim for several keys leaves those alone that are free.
    ReservesNothing,
    /// The last one to leave a queue, and each one before it, takes the mark away.
    LeaverUnmarks,
    /// The last one to leave a queue deletes the marked lock, which another claim has.
    LastFreesAnothers,

    // Another value than the plain one is a question to the script.
    /// A lean release that finds another value takes the lock for lost.
    NotEqualIsLost,
    /// A renewal that finds another value than the plain one takes the lock for lost.
    MarkedIsLost,

    // Whatever removes a lock that has waiters leaves a reservation, and what reads removes nothing.
    /// A quiet release leaves no reservation.
    QuietLeavesNothing,
    /// The release of the last one that shared leaves no reservation.
    LastSharerLeavesNothing,
    /// A renewal removes leases that are over, and the key with the last.
    RenewalPrunes,
    /// A read removes leases that are over, and the key with the last.
    ReadPrunes,

    // The flag belongs to a connection and a counter, and only a number by the clock sets it.
    /// A new connection counts on where the old one was.
    NewConnectionKeepsFlag,
    /// A process that keeps its connection over a change of role keeps its flag.
    RoleKeepsFlag,
    /// The flag is one of the process: a late answer of the old server sets it for the new one.
    LateAnswerSetsFlag,
    /// A script that queued the claim sets the flag.
    QueuedSetsFlag,
    /// A script that counted in one slot sets the flag for all slots.
    OneFlagForAllCounters,

    // A number below the floor, or not above one that was seen, counts nothing: the script raises the counter.
    /// Any number of an `INCR` counts.
    NumbersUnchecked,
    /// A number counts though this process has seen as great a one.
    SeenUnchecked,
    /// The scripts count one more than last time, whatever the clock says.
    IgnoresTheClock,

    // The time left is that in the mark. A reservation is no process's, and a lock without an end is somebody's.
    /// The time left of a marked lease is read from the end of its key.
    LeftFromExpiry,
    /// A lock of another program that has no TTL passes for one that is over.
    ForeverIsOver,
    /// A reservation passes for a lock that somebody has, and so does a mark whose lease is over.
    ReservationIsHeld,

    // Adoption, hand-off, `extend` and `WAIT`.
    /// A claim that has the lock already, and asks the script, is refused.
    AdoptsNothing,
    /// A claim that has the lock already, and asks the script, has it for no longer than its TTL.
    AdoptionShortens,
    /// A holder passes its lease on when it is over.
    PassesOnTooLate,
    /// A renewal makes a lease shorter that `extend` has made longer.
    RenewalShortens,
    /// A lease counts before the replica has it.
    DoesNotWait,
}
