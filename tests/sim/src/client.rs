//! A process's store: sends requests to one server over the simulated network, as the Redis store
//! does to Redis.

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::{
    AcquireOutcome, AcquireRequest, Claim, LockKey, ReleaseOutcome, ReleaseRequest, RenewOutcome,
    RenewRequest, Store, StoreError, Subscriber, Waiting,
};
use lockattr::{FencingToken, Holder, HolderId};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::connection::Shared;
use crate::life::Life;
use crate::messages::{Messages, Reply, Request};
use crate::network::Network;

/// How the client handles replies. All but the first are mistakes that the simulation must find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Habit {
    /// As the Redis store does.
    #[default]
    Right,
    /// The lease of a grant begins when its message arrives.
    DatesGrantsLate,
    /// The lease of a grant begins at a date, by the calendars of the server and of the process.
    DatesGrantsByCalendar,
    /// A renewal without a reply counts as successful.
    TreatsSilenceAsYes,
    /// A request without an immediate reply counts as lost.
    TreatsBusyAsGone,
}

/// After how long a hasty client gives up a request.
const HASTY: Duration = Duration::from_millis(25);

/// The locks of one server.
#[derive(Debug)]
pub(crate) struct WireStore {
    connection: Arc<Shared>,
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
        let connection = Shared::new(address, network, messages, life.clone(), habit, response);
        let connection = Arc::new(connection);
        Self { connection, life, habit }
    }

    async fn call(&self, request: Request) -> Result<Reply, StoreError> {
        if self.life.is_over() {
            return Err(StoreError::new("the process is dead").not_sent());
        }
        let live = self.connection.get().await?;
        let (sender, receiver) = oneshot::channel();
        let gone = || StoreError::new("the connection is gone");
        live.requests.send((request, sender)).map_err(|_| gone().not_sent())?;
        let limit = match self.habit {
            Habit::TreatsBusyAsGone => HASTY,
            _ => self.connection.response,
        };
        match timeout(limit, receiver).await {
            Ok(reply) => reply.map_err(|_| gone()),
            Err(_) => {
                live.suspected.notify_one();
                Err(StoreError::new("no answer in time"))
            }
        }
    }

    /// Sends the request of a whole batch, and returns a result for each of its elements.
    async fn call_batch<T>(
        &self,
        many: usize,
        request: Request,
        read: impl FnOnce(Reply) -> Option<Vec<T>>,
    ) -> Vec<Result<T, StoreError>> {
        match self.call(request).await.map(read) {
            Ok(replies) => replies.unwrap_or_default().into_iter().map(Ok).collect(),
            Err(error) => (0..many).map(|_| Err(error.clone())).collect(),
        }
    }
}

impl Store for WireStore {
    async fn acquire(&self, request: &AcquireRequest) -> Result<AcquireOutcome, StoreError> {
        let sent = Instant::now();
        match self.call(Request::Acquire(request.clone())).await? {
            Reply::Acquire(reply, clock) => {
                self.connection.compare_calendars(clock);
                // Like the script, which reports its clock only to claims that wait.
                let waits = request.waiting != Waiting::Not;
                if waits && matches!(reply, AcquireOutcome::Held { .. }) {
                    self.connection.notifications.saw_clock(sent, clock);
                }
                Ok(reply)
            }
            other => panic!("{other:?} is no answer to an acquire"),
        }
    }

    fn subscribe(&self, subscriber: &Arc<Subscriber>) {
        self.connection.notifications.add(subscriber);
    }

    async fn renew(&self, renewals: &[RenewRequest]) -> Vec<Result<RenewOutcome, StoreError>> {
        let read = |reply| match reply {
            Reply::Renew(replies) => Some(replies),
            _ => None,
        };
        let request = Request::Renew(renewals.to_vec());
        let replies = self.call_batch(renewals.len(), request, read).await;
        if self.habit == Habit::TreatsSilenceAsYes {
            return replies.into_iter().map(|one| one.or(Ok(RenewOutcome::Renewed))).collect();
        }
        replies
    }

    async fn release(
        &self,
        releases: &[ReleaseRequest],
    ) -> Vec<Result<ReleaseOutcome, StoreError>> {
        if self.life.is_over() {
            // Dropping the memory of a killed process must not wait for anything.
            return releases.iter().map(|_| Ok(ReleaseOutcome::NotHeld)).collect();
        }
        let read = |reply| match reply {
            Reply::Release(replies) => Some(replies),
            _ => None,
        };
        let request = Request::Release(releases.to_vec());
        self.call_batch(releases.len(), request, read).await
    }

    async fn holder(&self, key: &LockKey) -> Result<Option<Holder>, StoreError> {
        match self.call(Request::Holder(key.clone())).await? {
            Reply::Holder(holder) => Ok(holder),
            other => panic!("{other:?} is no reply to a request for the holder"),
        }
    }

    async fn force_release(&self, key: &LockKey, holder: &HolderId) -> Result<bool, StoreError> {
        match self.call(Request::ForceRelease(key.clone(), *holder)).await? {
            Reply::ForceReleased(released) => Ok(released),
            other => panic!("{other:?} is no reply to a forced release"),
        }
    }

    async fn next_token(&self, key: &LockKey) -> Result<Option<FencingToken>, StoreError> {
        match self.call(Request::NextToken(key.clone())).await? {
            Reply::NextToken(token) => Ok(token),
            other => panic!("{other:?} is no reply to a request for a token"),
        }
    }

    fn supports_companions(&self) -> bool {
        true
    }

    fn supports_downgrade(&self) -> bool {
        true
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.call(Request::Ping).await.map(|_| ())
    }

    fn refuses_claim(&self, _claim: &Claim) -> Option<String> {
        None
    }
}
