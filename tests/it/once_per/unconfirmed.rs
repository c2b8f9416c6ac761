//! Marks whose answer is late, lost or never comes.

use super::*;
use crate::support::{Fate, Scripted};

/// Red without: the limit on each request in `release_done`: the call would hang with the store.
#[tokio::test(start_paused = true)]
async fn a_mark_that_is_never_answered_is_given_up_when_the_lease_has_ended() {
    let store = Scripted::new();
    let manager = store.manager();
    let got = manager.with_lock_once_per("invoices", HOUR, options(), async |_| {
        store.releases(&[Fate::Hangs]);
        Ok::<_, Failed>(1)
    });
    let got = timeout(60 * SECOND, got).await.expect("it gives up with its lease");
    assert!(matches!(&got, Err(Error::Store { .. })), "{got:?}");
    assert!(got.unwrap_err().to_string().contains("did not confirm"));
}

/// A renewal would be refused: the lock is no longer its claim's.
///
/// Red without: the end of the hold before the mark is sent.
#[tokio::test(start_paused = true)]
async fn a_key_whose_mark_is_sent_again_is_no_longer_renewed() {
    let (locks, events) = (TestLocks::new(), capture_events());
    let began = Instant::now();
    let got = locks.manager().with_lock_once_per("invoices", HOUR, options(), async |_| {
        // Just before the first renewal.
        sleep(3 * SECOND - SECOND / 20).await;
        locks.lose_answers();
        Ok::<_, Failed>(1)
    });
    let mends = async {
        sleep(3 * SECOND - SECOND / 40).await;
        locks.mend();
    };
    let (got, ()) = tokio::join!(got, mends);
    assert_eq!(got.unwrap(), Ok(1));
    assert!(began.elapsed() > 3 * SECOND, "the mark was answered");
    assert_eq!(events.count("lock lost"), 0, "{:?}", events.all());
    assert!(locks.holder("invoices").is_some_and(|it| it.done));
}

/// The mark was executed and has ended, so the store no longer knows the lock.
///
/// Red without: `may_be_marked` in `release_done`; the end of the repetitions with the period.
#[tokio::test(start_paused = true)]
async fn a_mark_whose_period_passes_before_it_is_answered_is_no_loss() {
    for repeated in [Fate::Slow(3 * SECOND), Fate::ReplyLost] {
        let (store, events) = (Scripted::new(), capture_events());
        let manager = store.manager();
        let got = manager.with_lock_once_per("invoices", 2 * SECOND, options(), async |_| {
            store.releases(&[Fate::ReplyLost, repeated]);
            Ok::<_, Failed>(1)
        });
        assert_eq!(got.await.unwrap(), Ok(1), "{repeated:?}");
        assert_eq!(events.count("lock lost"), 0, "{:?}", events.all());
        sleep(SECOND).await;
        assert_eq!(store.holder("invoices").await, None, "{repeated:?}");
    }
}
