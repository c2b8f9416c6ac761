//! A process's store: sends requests to one server over the simulated network, as the Redis store
//! does to Redis.

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Store, StoreError, Subscriber, Waiting,
};
use lockattr::{FencingToken, Holder};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::connection::Shared;
use crate::life::Life;
use crate::messages::{Answer, Messages, Question};
use crate::network::Network;

/// How the client handles replies. All but the first are mistakes that the simulation must find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Habit {
    /// As the Redis store does.
    #[default]
    Right,
    /// The lease of a grant begins when its message arrives.
    DatesGrantsLate,
    /// A renewal without a reply counts as successful.
    TakesSilenceForYes,
    /// A request without an immediate reply counts as lost.
    TakesBusyForGone,
}

/// After how long a hasty client gives up a request.
const HASTY: Duration = Duration::from_millis(25);

/// The locks of one server.
#[derive(Debug)]
pub(crate) struct WireStore {
    line: Arc<Shared>,
    life: Life,
    habit: Habit,
}

impl WireStore {
    /// The store of the server at `address`, for one life of a process. Does not connect yet.
    pub(crate) fn new(
        address: &str,
        network: Network,
        messages: Messages,
        life: Life,
        habit: Habit,
        response: Duration,
    ) -> Self {
        let line = Shared::new(address, network, messages, life.clone(), habit, response);
        let line = Arc::new(line);
        Self { line, life, habit }
    }

    async fn ask(&self, question: Question) -> Result<Answer, StoreError> {
        if self.life.is_over() {
            return Err(StoreError::new("the process is dead").not_sent());
        }
        let live = self.line.get().await?;
        let (tells, told) = oneshot::channel();
        let gone = || StoreError::new("the connection is gone");
        live.asks.send((question, tells)).map_err(|_| gone().not_sent())?;
        let patience = match self.habit {
            Habit::TakesBusyForGone => HASTY,
            _ => self.line.response,
        };
        match timeout(patience, told).await {
            Ok(answer) => answer.map_err(|_| gone()),
            Err(_) => {
                live.suspected.notify_one();
                Err(StoreError::new("no answer in time"))
            }
        }
    }

    /// Sends the request of a whole batch, and returns a result for each of its elements.
    async fn ask_all<T>(
        &self,
        many: usize,
        question: Question,
        read: impl FnOnce(Answer) -> Option<Vec<T>>,
    ) -> Vec<Result<T, StoreError>> {
        match self.ask(question).await.map(read) {
            Ok(answers) => answers.unwrap_or_default().into_iter().map(Ok).collect(),
            Err(error) => (0..many).map(|_| Err(error.clone())).collect(),
        }
    }
}

impl Store for WireStore {
    async fn acquire(&self, asked: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let sent = Instant::now();
        match self.ask(Question::Acquire(asked.clone())).await? {
            Answer::Acquire(answer, clock) => {
                // Like the script, which reports its clock only to claims that wait.
                let waits = asked.waiting != Waiting::Not;
                if waits && matches!(answer, AcquireOutcome::Held { .. }) {
                    self.line.post.saw_clock(sent, clock);
                }
                Ok(answer)
            }
            other => panic!("{other:?} is no answer to an acquire"),
        }
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.line.post.add(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let read = |answer| match answer {
            Answer::Renew(answers) => Some(answers),
            _ => None,
        };
        let question = Question::Renew(renewals.to_vec());
        let answers = self.ask_all(renewals.len(), question, read).await;
        if self.habit == Habit::TakesSilenceForYes {
            return answers.into_iter().map(|one| one.or(Ok(RenewOutcome::Renewed))).collect();
        }
        answers
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        if self.life.is_over() {
            // Dropping the memory of a killed process must not wait for anything.
            return releases.iter().map(|_| Ok(ReleaseOutcome::NotHeld)).collect();
        }
        let read = |answer| match answer {
            Answer::Release(answers) => Some(answers),
            _ => None,
        };
        let question = Question::Release(releases.to_vec());
        self.ask_all(releases.len(), question, read).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        match self.ask(Question::Holder(key.clone())).await? {
            Answer::Holder(holder) => Ok(holder),
            other => panic!("{other:?} is no reply to a request for the holder"),
        }
    }

    async fn next_token(&self, key: &LockKey) -> Result<Option<FencingToken>, StoreError> {
        match self.ask(Question::Number(key.clone())).await? {
            Answer::Number(number) => Ok(number),
            other => panic!("{other:?} is no reply to a request for a token"),
        }
    }

    fn supports_companions(&self) -> bool {
        true
    }

    fn supports_downgrade(&self) -> bool {
        true
    }

    fn answered_since(&self, _key: &LockKey, since: Instant) -> bool {
        self.line.answered_since(since)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.ask(Question::Ping).await.map(|_| ())
    }
}
