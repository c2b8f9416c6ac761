//! Callers that could share a lock, or whose wait budgets end together: each is served or learns
//! why not, whatever the head and the others do in between.

use std::sync::Arc;

use crate::explore::{Seen, Waits, every_schedule, task};
use crate::lock::{LIMITS, NAME, NOW};
use crate::wait_queue::{Head, Joined, Received, WaitQueues, Waiter};

type Crowd = WaitQueues<char, (), &'static str>;
type CrowdHead = Head<char, (), &'static str>;
type CrowdWaiter = Waiter<char, (), &'static str>;

/// A head that asks, and these waiters behind it.
fn crowd<const N: usize>(callers: [char; N]) -> (Arc<Crowd>, CrowdHead, [CrowdWaiter; N]) {
    let queues = Crowd::new(LIMITS);
    let Joined::Head(head, None) = queues.join(NAME, '0', None) else { panic!("it is the first") };
    let waiters = callers.map(|caller| match queues.join(NAME, caller, None) {
        Joined::Waiting(waiter) => waiter,
        Joined::Head(..) => panic!("the queue has a head"),
    });
    (queues, head, waiters)
}

/// Waits until it is this caller's turn to ask. As a probe it is refused, and rejoins.
fn wait_until_it_asks(queues: &Arc<Crowd>, mut waiter: CrowdWaiter, caller: char) -> bool {
    loop {
        let received = Waits::ForIt.wait(waiter.received());
        drop(waiter);
        match received {
            Some(Received::Head(_head)) => return true,
            Some(Received::Probe(number, _)) => match queues.join(NAME, caller, Some(number)) {
                Joined::Head(_head, _) => return true,
                Joined::Waiting(again) => waiter = again,
            },
            Some(Received::Lock(())) | None => return false,
        }
    }
}

/// The head was granted a lock that can be shared. It leaves, and sends probes. Each waiter asks in
/// the end.
///
/// Red without: the probes in `Waiter::pick_up`; or `join` with the earlier number.
#[test]
fn probes_that_are_refused_return_to_the_queue_and_none_is_forgotten() {
    every_schedule("probes", |ends| {
        let (queues, head, waiters) = crowd(['a', 'b']);
        let asked = Seen::default();
        for (caller, waiter) in ['a', 'b'].into_iter().zip(waiters) {
            let (queues, asked, ends) = (queues.clone(), asked.clone(), ends.clone());
            task(move || {
                assert!(
                    wait_until_it_asks(&queues, waiter, caller),
                    "{caller} was handed a lock that no task had"
                );
                asked.note(&caller.to_string());
                if asked.all().len() == 2 {
                    assert!(queues.try_join(NAME).is_none_or(|(_, cached)| cached.is_none()));
                    ends.one_more();
                }
            });
        }
        queues.share(NAME, "granted");
        assert_eq!(queues.companion(NAME, u64::MAX), None, "it arrived later");
        drop(head);
        queues.send_probes(NAME, 1, |_| true);
    });
}

/// The head has lost its lock and releases it only later. Its waiter asks once.
///
/// Red without: the head's number in `ByName::of`.
#[test]
fn a_head_that_is_passed_over_has_no_effect_any_more() {
    every_schedule("passed over", |ends| {
        let (queues, head, [waiter]) = crowd(['a']);
        head.granted(false, "ours", NOW);
        let waiting_queues = queues.clone();
        task(move || {
            assert!(wait_until_it_asks(&waiting_queues, waiter, 'a'));
            ends.one_more();
        });
        queues.skip_lost_head(NAME, |known| *known == "ours");
        head.learned("too late");
        assert_ne!(queues.try_join(NAME).and_then(|(head, _)| head.known()), Some("too late"));
        drop(head);
    });
}

/// A caller's wait budget ends before anything is known. It gets what the head learns, or may ask
/// for all.
///
/// Red without: the waiters that `learns` wakes.
#[test]
fn a_waiter_whose_time_is_over_learns_what_the_head_learns() {
    every_schedule("known", |ends| {
        let (queues, head, [waiter]) = crowd(['a']);
        assert!(!queues.may_probe(NAME), "a caller waits");
        task(move || {
            let known = loop {
                match waiter.known() {
                    Ok(known) => break known,
                    Err(changed) => drop(Waits::ForIt.wait(changed)),
                }
            };
            assert!(waiter.id() > 0 && ["held", "notified"].contains(&known), "{known}");
            ends.one_more();
        });
        if queues.may_probe_for_all(NAME) {
            assert!(!queues.may_probe_for_all(NAME), "one is enough");
            queues.learned(NAME, "notified");
        }
        head.show_life();
        let signs = queues.signs(NAME).expect("it is there");
        head.learned("held");
        queues.skip_silent_head(NAME, signs);
        drop(head);
    });
}
