//! Standing in line: waiting for those before, and being granted the lock; and, having it, hearing
//! that others wait.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use tokio::time::{Instant, sleep};

use super::ensemble::{Ensemble, Entry};
use super::place::{Is, Made};
use super::shared::{Lines, Shared};
use super::turns::{connection_for, in_the_way, served};
use crate::FencingToken;
use crate::store::{Claim, Grant, LockKey};

/// A hold that is over sooner never asks whether others wait for it.
const SHORT: Duration = Duration::from_millis(10);

/// Whether the claim has its turn in all of its lines; none if it does not stand in one.
pub(super) fn has_its_turn(claim: &Claim, lines: &Lines) -> Option<bool> {
    let mut all = true;
    for line in lines {
        all &= connection_for(line, claim.token())? < served(line);
    }
    Some(all)
}

/// Whether others wait in these lines.
pub(super) fn others_wait(lines: &Lines) -> bool {
    lines.iter().any(|line| served(line) < line.len())
}

/// Waits until it is the claim's turn, and tells its inbox.
pub(super) async fn wait<E: Ensemble>(
    shared: Arc<Shared<E>>,
    claim: Arc<Claim>,
    made: Arc<Made>,
    mut lines: Lines,
) {
    loop {
        somebody_goes(&shared.ensemble, &claim, &lines).await;
        let looked = shared.look_for_turn(&claim, &made).await;
        lines = match looked {
            Ok((Some(lines), since)) if has_its_turn(&claim, &lines) == Some(true) => {
                return grant(&shared, &claim, &made, &lines, since).await;
            }
            Ok((Some(lines), _)) if has_its_turn(&claim, &lines).is_some() => lines,
            other => {
                // Else an entry is gone: removed by hand, or with its session. When it asks again it
                // comes anew, and until then it is known what else there is of it.
                if let Err(error) = other {
                    let key = claim.key().as_str();
                    tracing::debug!(key, %error, "a line could not be looked at");
                }
                // Patience belongs to the manager.
                match shared.subscriber(&claim) {
                    Some(subscriber) => subscriber.ask_again(claim.token(), Instant::now()),
                    None => gives_up(&shared, &claim).await,
                }
                return;
            }
        };
    }
}

/// Returns when the line may have moved for this claim: in the first where it has not its turn.
async fn somebody_goes<E: Ensemble>(ensemble: &E, claim: &Claim, lines: &Lines) {
    for (key, line) in claim.keys().iter().zip(lines) {
        let Some(nth) = connection_for(line, claim.token()) else { return };
        if nth < served(line) {
            continue;
        }
        match in_the_way(line, nth) {
            [one] => ensemble.gone(key, one).await,
            some => {
                let gone = some.iter().map(|one| Box::pin(ensemble.gone(key, one)));
                select_all(gone).await;
            }
        }
        return;
    }
}

/// The claim has its locks, in a lease that runs since then.
async fn grant<E: Ensemble>(
    shared: &Arc<Shared<E>>,
    claim: &Arc<Claim>,
    made: &Arc<Made>,
    lines: &Lines,
    since: Instant,
) {
    let token = claim.token();
    let Some(subscriber) = shared.subscriber(claim) else { return gives_up(shared, claim).await };
    let told =
        shared.places().get(token).is_some_and(|place| place.is == Is::Waiting { told: true });
    if told {
        return subscriber.ask_again(token, Instant::now());
    }
    // This also ends what goes on here, which is at its end.
    if shared.places().holds(token, made, Instant::now()) {
        let contended = others_wait(lines);
        subscriber
            .granted(token, Grant::new(FencingToken::from_counter(made.number), since, contended));
        if shared.time().is_err() || contended {
            return;
        }
        hear_of_others(shared, claim, lines);
    }
}

/// The claim's manager is gone: the next one's turn.
async fn gives_up<E: Ensemble>(shared: &Arc<Shared<E>>, claim: &Arc<Claim>) {
    let this = shared.places().get(claim.token()).and_then(|place| place.task.take());
    if let Some(this) = this {
        // It ends with what follows.
        this.let_go();
    }
    let leaver = shared.places().leaves(claim.token(), Instant::now());
    shared.end(Vec::from_iter(leaver)).await;
}

/// Has the claim's inbox told when others come to wait for its lock, if it could do something about
/// it: only a lock of one key that nobody shares is handed on inside a process, or kept.
pub(super) fn hear_of_others<E: Ensemble>(
    shared: &Arc<Shared<E>>,
    claim: &Arc<Claim>,
    lines: &Lines,
) {
    let ([key], [line]) = (claim.keys(), &lines[..]) else { return };
    if line.iter().any(|entry| entry.sharing != crate::store::Sharing::Exclusive) {
        return;
    }
    let heard = hear(shared.clone(), claim.clone(), key.clone(), line.clone());
    // Without it, others wait a little longer.
    if let Ok(task) = shared.spawn(heard)
        && let Some(place) = shared.places().get(claim.token()).filter(|it| it.is == Is::Holding)
    {
        place.task = Some(task);
    }
}

async fn hear<E: Ensemble>(
    shared: Arc<Shared<E>>,
    claim: Arc<Claim>,
    key: LockKey,
    line: Vec<Entry>,
) {
    sleep(SHORT).await;
    shared.ensemble.grown(&key, &line).await;
    if let Some(subscriber) = shared.subscriber(&claim) {
        subscriber.contended(key.name());
    }
}
