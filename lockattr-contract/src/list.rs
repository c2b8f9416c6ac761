//! The list of all promises: each with the abilities that it needs, and in a sentence.
//!
//! Macros read it: one defines [`promises`](crate::promises), others make tests of it.

/// Calls `$callback` with the promises of one group.
#[doc(hidden)]
#[macro_export]
macro_rules! __group {
    (lease $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments lease
            a_free_lock_is_acquired []
                "A claim acquires a free lock, and `holder` then reports a holder and how long its lease still runs.";
            a_held_lock_names_its_holder []
                "A refused claim learns the holder: service, host, process, function, since when, and how much longer.";
            the_same_claim_is_granted_again []
                "An acquire can be repeated: a claim that has the lock is granted it again, under the same number or a greater one, and the lease starts again.";
            a_released_lock_is_free []
                "A released lock is free, and the next claim acquires it.";
            a_stale_release_frees_no_lock []
                "A release compares the owner token: a former holder's release does not free the lock of its successor.";
            a_second_release_is_not_held []
                "A release tells the truth: of two, the second one answers `NotHeld`.";
            a_lease_ends_by_itself []
                "A lease ends without a command: another claim acquires the lock then, and the former holder's release answers `NotHeld`.";
            a_renewed_lease_runs_on []
                "A renewal extends the lease to its `ttl` from now.";
            a_renewal_never_shortens []
                "A renewal never shortens a lease, also if its `ttl` ends earlier.";
            a_renewal_resurrects_nothing []
                "A renewal compares the owner token: without holding the lock, a claim gets `NotHeld`, and nothing is locked or extended.";
            a_renewal_does_not_resurrect_a_lease_that_ended []
                "A renewal after the lease has ended answers `NotHeld`, also if no other claim came since, and the lock stays free.";
            a_dropped_request_takes_effect_before_a_later_one []
                "Commands that one task sends for one key take effect in that order, also those whose future was dropped after its first poll.";
            batches_answer_one_by_one_in_order []
                "Batches of renewals and releases answer one by one, in the order asked, and a claim without its lock does not stop the others.";
            an_empty_batch_has_no_answers []
                "An empty batch has no answers.";
        }
    };
    (tokens $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments tokens
            fencing_tokens_grow_in_order []
                "Fencing tokens only grow, per key, from one acquisition to the next, and are positive as a signed 64-bit number.";
            odd_keys_are_kept_apart []
                "Keys are compared byte by byte: letters of another case, spaces, zero bytes and other encodings name other locks.";
            one_of_many_gets_it []
                "Of many claims that ask at the same time, one acquires the lock.";
            a_counter_under_the_lock_loses_nothing []
                "Two managers over two nodes exclude each other: a counter that is read and written under the lock loses no step.";
        }
    };
    (processes $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments processes
            a_lock_excludes_other_processes []
                "A lock that one process acquired is held for all others: they can neither acquire, renew nor release it.";
            fencing_tokens_grow_across_processes []
                "Fencing tokens only grow, per key, whichever process acquires the lock.";
            fencing_tokens_grow_for_a_process_that_starts_later []
                "Fencing tokens only grow, per key, also for a process that connects after the earlier ones were given.";
        }
    };
    (wait_queue $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments wait_queue
            queued_claims_are_granted_in_the_order_of_their_arrival [wait_queue]
                "A queue is served in order: a release grants the lock to the first waiter and notifies its subscriber.";
            a_queued_claim_that_asks_again_keeps_its_place [wait_queue]
                "A queued claim keeps its place when it asks again.";
            a_granted_claim_that_asks_again_still_has_the_lock [wait_queue]
                "A claim that was granted the lock and asks again still has it, before all other waiters.";
            a_claim_that_is_released_leaves_the_queue [wait_queue]
                "A release also removes a claim from the queue, and frees no lock of another holder.";
            a_caller_that_asks_only_once_does_not_overtake_the_queue [wait_queue]
                "A claim that only asks once does not overtake the queue, also if the lock is free because its lease ended.";
            a_holder_learns_that_others_wait [wait_queue]
                "After `watch_for_waiters`, the subscriber of a holder learns that another process waits.";
            fencing_tokens_grow_over_grants_too [wait_queue]
                "Fencing tokens only grow, per key, also from grant to grant.";
            claims_of_a_manager_that_is_gone_are_passed_over [wait_queue]
                "Queued claims of a process that is gone are passed over.";
        }
    };
    (kept $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments kept
            a_lock_stays_locked_for_the_rest_of_its_time []
                "A release with `after` keeps the lock held for that long, and then its lease ends.";
            a_lock_that_stays_locked_expires [wait_queue]
                "A lock that stays held after its release goes to the first waiter when that time is over.";
            a_lock_may_stay_locked_for_longer_than_its_lease []
                "A release with `after` keeps the lock held even for longer than the lease would have lasted.";
            a_lock_that_is_not_held_does_not_stay_locked []
                "A release with `after` compares the owner token: it neither locks a free lock nor changes the lease of another holder.";
        }
    };
    (shared $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments shared
            sharers_hold_together_and_an_exclusive_holder_alone [shared]
                "Shared claims hold a lock together, and an exclusive claim holds it alone.";
            an_exclusive_claim_is_not_overtaken_by_sharers [shared wait_queue]
                "An exclusive claim in the queue is not overtaken by claims that could share the lock with its holders.";
            a_sharer_releases_only_its_own_lease [shared]
                "A release by one of several sharers ends its own lease and no other.";
        }
    };
    (permits $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments permits
            permits_are_counted [permits]
                "As many claims hold a lock as there are permits, by the number that the claim names, and each counts once.";
            a_released_permit_goes_to_the_first_waiter [permits wait_queue]
                "A released permit goes to the first waiter, and to no other.";
            shared_locks_and_permits_do_not_mix [shared permits]
                "A shared claim and a claim for a permit exclude each other.";
            the_lease_of_each_sharer_ends_by_itself [permits]
                "The lease of each of several holders ends by itself, without those of the others.";
            a_permit_is_handed_on_under_a_number_of_its_own [permits]
                "`next_token` gives a number above those of earlier acquisitions and below those of later ones, or none.";
        }
    };
    (several_keys $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments several_keys
            several_keys_are_acquired_together_or_not_at_all [several_keys]
                "A claim for several keys acquires all of them or none.";
            several_keys_are_renewed_and_released_as_one [several_keys]
                "The keys of a claim are renewed and released as one.";
            the_same_keys_in_another_order_take_turns [several_keys wait_queue]
                "Claims that name the same keys in another order wait for each other without a deadlock.";
            a_claim_for_several_keys_is_not_overtaken_forever [several_keys wait_queue]
                "A claim for several keys is overtaken for a second at most: then its free keys are kept for it.";
            several_keys_are_shared [several_keys shared wait_queue]
                "A shared claim for several keys shares each of them.";
            batches_with_several_keys_answer_one_by_one [several_keys]
                "Batches with claims for several keys answer one by one, in the order asked.";
        }
    };
    (deadlocks $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments deadlocks
            a_deadlock_of_two_processes_is_broken_and_named []
                "`holder` shows what a manager wrote for others, so two processes that wait for each other find the deadlock.";
            a_deadlock_through_two_managers_is_broken []
                "A call that locks through two managers of one process shows both holds to the others.";
            a_deadlock_of_three_processes_is_broken_by_one []
                "Of three processes that wait in a circle, one gives up and the others go on.";
            a_note_of_a_dead_process_is_ignored []
                "What a dead process wrote about its wait breaks no other wait.";
        }
    };
    (listing $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments listing
            locks_are_listed_by_their_prefix [listing]
                "Only held locks are listed, and only those whose names begin with the prefix: no released one, none whose lease ended.";
            held_locks_are_listed_and_nothing_else [listing several_keys wait_queue]
                "Only held locks are listed, each with its number of waiters: no queue, no counter, no released lock.";
            sharers_of_a_lock_are_counted [listing shared wait_queue]
                "A shared lock is listed once, with its number of holders.";
            holders_of_permits_are_counted [listing permits force_release wait_queue]
                "A lock with permits is listed once, with its number of holders.";
            a_claim_that_waits_for_several_keys_holds_none [listing force_release several_keys wait_queue]
                "A claim that waits for several keys holds none of them, and is listed for none.";
        }
    };
    (force_release $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments force_release
            a_force_released_lock_is_lost_to_its_holder [force_release]
                "After a forced release the next claim gets a greater fencing token, and nothing that the former holder does takes the lock from it.";
            a_force_released_lock_goes_to_the_next_in_the_queue [force_release wait_queue]
                "A forced release hands the lock to the next waiter at once, under a greater fencing token.";
            a_lock_is_taken_only_from_the_holder_that_was_seen [force_release]
                "A forced release changes nothing if the lock is free, or if another claim than the one that was seen holds it by now, and reports that.";
            of_several_holders_only_the_one_that_was_seen_loses_the_lock [force_release shared wait_queue]
                "A forced release takes a shared lock from one holder, and leaves it to the others.";
            a_claim_for_several_keys_loses_all_with_one [force_release several_keys wait_queue]
                "A claim for several keys that loses one of them by force loses all.";
        }
    };
    (companions $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments companions
            a_companion_of_a_holder_enters_before_the_queue [companions shared wait_queue]
                "The companion of a holder of its process enters before the queue.";
            a_companion_of_a_claim_that_holds_nothing_waits [companions shared wait_queue]
                "The companion of a claim that does not hold the lock does not overtake the queue.";
            a_companion_gets_no_more_permits_than_there_are [companions permits]
                "A companion gets no permit beyond their number.";
        }
    };
    (downgrade $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments downgrade
            a_renewal_makes_an_exclusive_lock_a_shared_one [downgrade shared]
                "The renewal of an exclusive claim that became a shared one makes its lock a shared one.";
            waiting_readers_are_granted_what_a_writer_shares [downgrade shared wait_queue]
                "When a lock becomes a shared one, waiters that can share it are granted it.";
        }
    };
    (done $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments done
            a_done_key_stays_held_for_its_period [done]
                "A key that its claim marks as done stays held for the period, also without its process, and a refused claim learns that it is done.";
            a_key_can_be_marked_again_by_its_own_claim [done]
                "A mark can be repeated: the key is done, and its period does not begin again.";
            a_done_key_is_no_longer_its_claims [done]
                "No renewal, release or acquire of the claim that marked a key takes the mark away or changes its end.";
            a_mark_compares_the_owner_token [done]
                "A mark compares the owner token: it neither locks a free key nor changes the lock or the mark of another claim.";
            a_done_key_is_free_after_its_period [done]
                "A done key is free when its period is over, and the next claim gets a greater fencing token.";
            waiters_of_a_done_key_ask_again_at_once [done wait_queue]
                "Each waiter of a key that becomes done is notified to ask again at once, and then learns it.";
            a_waiter_for_several_keys_asks_again_too [done several_keys wait_queue]
                "A waiter for several keys is notified to ask again when one of them becomes done.";
            a_done_key_is_listed_as_done [done listing]
                "A done key is listed among the held locks, as done.";
            a_forced_release_reopens_a_done_key [done force_release]
                "A forced release by the id of the mark reopens a done key, by that of the claim it does not, and the next claim gets a greater fencing token.";
            a_reopened_key_goes_to_the_next_in_the_queue [done force_release wait_queue]
                "A forced release hands a done key to the next waiter.";
        }
    };
    (overtaking $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments overtaking
            a_claim_for_several_keys_is_overtaken_while_another_key_is_held [several_keys wait_queue]
                "A claim for several keys lets others have a key while it waits for another one, for up to a second.";
        }
    };
    (quorum_node $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments quorum_node
            a_notified_claim_acquires_the_lock [wait_queue]
                "A claim that waits with `Waiting::Told` is notified when the lock is free, and then acquires it.";
            a_notified_claim_acquires_the_free_lock_past_other_waiters [wait_queue]
                "A claim that was notified to ask comes before all queued claims.";
            a_later_claim_does_not_overtake_a_notified_one [wait_queue]
                "A claim that came later does not overtake one that was notified to ask.";
            a_queued_claim_is_granted_the_lock_without_a_request [wait_queue]
                "A claim that waits with `Waiting::Queued` is granted the lock without another request.";
            a_claim_that_acquires_before_its_notification_has_left_the_queue [wait_queue]
                "A claim that acquires the lock before its notification leaves no entry in the queue.";
            one_claim_at_a_time_is_notified [wait_queue]
                "One exclusive claim at a time is notified to ask, and the next one when it gives up.";
            a_quiet_release_notifies_no_claim_and_keeps_the_place [wait_queue]
                "A release without notification frees the lock, notifies no claim, and keeps the claim's place in the queue.";
            a_hint_counts_instead_of_the_clock []
                "A hint raises the fencing counter to itself, unless it is behind the counter or more than an hour ahead.";
            a_renewal_writes_a_token_back_where_the_lock_is_held []
                "A renewal with a fencing token raises the counter above it, if the claim holds its lock.";
        }
    };
    (connection_locks $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments connection_locks
            the_same_claim_is_granted_again_without_end []
                "A claim that has the lock is granted it again, and one release is enough.";
        }
    };
    ($other:ident $callback:ident $arguments:tt) => {
        compile_error!(concat!(
            "no group `", stringify!($other), "`: expected `lease`, `tokens`, `processes`, `wait_queue`, `kept`, \
             `shared`, `permits`, `several_keys`, `deadlocks`, `listing`, `force_release`, `companions`, \
             `downgrade`, `done`, `overtaking`, `quorum_node` or `connection_locks`"
        ));
    };
}

/// Calls `$callback` with the promise of a store that leaves this ability out.
#[doc(hidden)]
#[macro_export]
macro_rules! __absent {
    (wait_queue $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments absent
            a_store_without_wait_queues_queues_no_claim []
                "A store without wait queues queues no claim: it answers `queued: None`, and a refused claim leaves nothing behind.";
        }
    };
    (shared $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments absent
            a_store_without_shared_locks_refuses_them []
                "`refuses_claim` says why a store without shared locks never grants a shared claim.";
        }
    };
    (permits $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments absent
            a_store_without_permits_refuses_them []
                "`refuses_claim` says why a store without permits never grants a claim for one.";
        }
    };
    (several_keys $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments absent
            a_store_of_single_keys_refuses_several []
                "`refuses_claim` says why a store of single keys never grants a claim for several.";
        }
    };
    (listing $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments absent
            a_store_that_cannot_list_says_so []
                "`held_locks` fails in a store that cannot list its locks.";
        }
    };
    (force_release $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments absent
            a_store_that_cannot_take_locks_says_so []
                "`force_release` fails in a store that cannot take a lock, and leaves it held.";
        }
    };
    (companions $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments absent
            a_store_without_companions_promises_none []
                "`supports_companions` is `false` where a companion has to queue like any other claim.";
        }
    };
    (downgrade $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments absent
            a_store_without_downgrades_promises_none []
                "`supports_downgrade` is `false` where an exclusive lock cannot become a shared one.";
        }
    };
    (done $callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments absent
            a_store_that_keeps_no_key_done_says_so []
                "`refuses_done` says why a store cannot keep a key done, and `mark_done` fails there and leaves the lock to its claim.";
        }
    };
    ($other:ident $callback:ident $arguments:tt) => {
        compile_error!(concat!(
            "no ability `", stringify!($other), "`: expected `wait_queue`, `shared`, `permits`, `several_keys`, \
             `listing`, `force_release`, `companions`, `downgrade` or `done`"
        ));
    };
}
