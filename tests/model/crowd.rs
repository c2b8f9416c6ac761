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
fn crowd<const N: usize>(waiters: [char; N]) -> (Arc<Crowd>, CrowdHead, [CrowdWaiter; N]) {
    let lines = Crowd::new(LIMITS);
    let Joined::Head(head, None) = lines.join(NAME, '0', None) else { panic!("it is the first") };
    let places = waiters.map(|who| match lines.join(NAME, who, None) {
        Joined::Waiting(place) => place,
        Joined::Head(..) => panic!("the queue has a head"),
    });
    (lines, head, places)
}

/// Waits until it is this caller's turn to ask. As a probe it is refused, and rejoins.
fn until_it_asks(lines: &Arc<Crowd>, mut place: CrowdWaiter, who: char) -> bool {
    loop {
        let came = Waits::ForIt.wait(place.received());
        drop(place);
        match came {
            Some(Received::Ask(_head)) => return true,
            Some(Received::Probe(number, _)) => match lines.join(NAME, who, Some(number)) {
                Joined::Head(_head, _) => return true,
                Joined::Waiting(again) => place = again,
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
    every_schedule("scouts", |ends| {
        let (lines, head, places) = crowd(['a', 'b']);
        let asked = Seen::default();
        for (who, place) in ['a', 'b'].into_iter().zip(places) {
            let (lines, asked, ends) = (lines.clone(), asked.clone(), ends.clone());
            task(move || {
                assert!(
                    until_it_asks(&lines, place, who),
                    "{who} was handed a lock that no task had"
                );
                asked.note(&who.to_string());
                if asked.all().len() == 2 {
                    assert!(lines.try_join(NAME).is_none_or(|(_, kept)| kept.is_none()));
                    ends.one_more();
                }
            });
        }
        lines.share(NAME, "granted");
        assert_eq!(lines.companion(NAME, u64::MAX), None, "it arrived later");
        drop(head);
        lines.send_probes(NAME, 1, |_| true);
    });
}

/// The head has lost its lock and releases it only later. Its waiter asks once.
///
/// Red without: the head's number in `ByName::of`.
#[test]
fn a_head_that_is_passed_over_has_no_effect_any_more() {
    every_schedule("passed over", |ends| {
        let (lines, head, [place]) = crowd(['a']);
        head.granted(false, "ours", NOW);
        let waits = lines.clone();
        task(move || {
            assert!(until_it_asks(&waits, place, 'a'));
            ends.one_more();
        });
        lines.skip_lost_head(NAME, |known| *known == "ours");
        head.learned("too late");
        assert_ne!(lines.try_join(NAME).and_then(|(head, _)| head.known()), Some("too late"));
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
        let (lines, head, [place]) = crowd(['a']);
        assert!(!lines.may_probe(NAME), "a caller waits");
        task(move || {
            let known = loop {
                match place.known() {
                    Ok(known) => break known,
                    Err(changed) => drop(Waits::ForIt.wait(changed)),
                }
            };
            assert!(place.number() > 0 && ["taken", "told"].contains(&known), "{known}");
            ends.one_more();
        });
        if lines.may_probe_for_all(NAME) {
            assert!(!lines.may_probe_for_all(NAME), "one is enough");
            lines.learned(NAME, "told");
        }
        head.shows_life();
        let signs = lines.signs(NAME).expect("it is there");
        head.learned("taken");
        lines.skip_silent_head(NAME, signs);
        drop(head);
    });
}
