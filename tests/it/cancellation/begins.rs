//! `hold_at_least` applies only once the body has begun: a call that is dropped earlier keeps no
//! lock.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use lockattr::{Error, Lease, LockOptions};
use tokio::time::sleep;

use super::stepped::TRIP;
use super::world::{LEASE, World};

/// Far longer than every test.
const LEAST: Duration = LEASE.saturating_mul(3600);

/// More polls than any future here needs.
const MOST: usize = 50;

/// Polls `future` `polls` times, each time it is woken. Returns whether it has completed.
async fn polled(mut future: Pin<&mut impl Future>, mut polls: usize) -> bool {
    poll_fn(|context| {
        if polls == 0 {
            return Poll::Ready(false);
        }
        polls -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if polls == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Drops a call at each of its await points before its body begins, and checks that the lock is
/// free. Returns how many points there were.
async fn points(handed_over: bool) -> usize {
    for polls in 1..MOST {
        let world = World::new();
        let before = match handed_over {
            true => Some(world.held(LockOptions::new()).await),
            false => None,
        };
        let begun = Cell::new(false);
        let body = async |_: &Lease| begun.set(true);
        let options = LockOptions::new().hold_at_least(LEAST).wait(3600 * LEASE);
        {
            let call = world.ours.with_lock("a", options.clone(), body);
            let mut call: Pin<&mut dyn Future<Output = Result<(), Error>>> = pin!(call);
            if let Some(guard) = before {
                // The call waits behind the holder and is handed the lock.
                assert!(!polled(pin!(&mut call), 1).await);
                guard.release().await.unwrap();
            }
            polled(pin!(&mut call), polls).await;
            if begun.get() {
                return polls - 1;
            }
        }
        sleep(4 * TRIP).await;
        assert_eq!(world.owner("a").await, None, "held for a body that never ran: {polls} polls");
        sleep(4 * LEASE).await;
    }
    panic!("the body never begins");
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_before_its_body_begins_ignores_hold_at_least() {
    assert!(points(false).await >= 2, "a fresh acquire has its points");
    // After a hand-off the lock is ready: the next poll begins the body.
    assert_eq!(points(true).await, 0);
}
