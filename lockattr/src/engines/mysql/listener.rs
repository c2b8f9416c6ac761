//! Receives the messages for the managers of this process. MySQL cannot push messages, so a
//! connection sleeps on the server, and is woken there.
//!
//! Unless there are messages, that connection requests a lock (`GET_LOCK`) that another connection
//! of this process holds. A client that has messages for it commits them, and then kills that
//! query. If the query has not begun by then, it finds the messages. (It does not use `SLEEP`: in
//! MariaDB all sleeping queries share a mutex, and a `KILL` can wait for it for two seconds.)

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::config::Config;
use super::connect::{Live, abandon, error_from};
use super::reply::{self, exec_first};
use crate::store::slots::{Attempt, Slots, current_runtime, unless_panics};
use crate::store::{Notifications, StoreError, Subscriber, Subscribers};

/// How long the connection sleeps at most. Then it checks by itself, in case no client may wake it.
const MAX_SLEEP: Duration = Duration::from_secs(10);

/// Where the procedures put notifications for this process: the name of a lock that it holds, which ends
/// in a colon and the id of the sleeping connection.
pub(super) type Name = Arc<str>;

/// A task that listens: its name, and the sender that ends the task when it is dropped.
type Listening = (Name, Arc<oneshot::Sender<()>>);

/// Receives the messages for the subscribers of a store.
pub(super) struct Listener {
    config: Arc<Config>,
    notifications: Notifications,
    listening: Slots<runtime::Id, Listening>,
}

impl Listener {
    pub(super) fn new(config: Arc<Config>) -> Arc<Self> {
        let notifications = Notifications::new(Arc::<Subscribers>::default(), false);
        Arc::new(Self { config, notifications, listening: Slots::default() })
    }

    /// Serves this subscriber too, for as long as its manager keeps it.
    pub(super) fn add(&self, subscriber: &Arc<Subscriber>) {
        self.notifications.subscribers.add(subscriber);
    }

    /// Whether any manager may receive messages.
    pub(super) fn has_subscribers(&self) -> bool {
        !self.notifications.subscribers.all().is_empty()
    }

    /// Notes the server's clock in the answer to a request that was sent at `sent_at`.
    pub(super) fn saw_clock(&self, sent_at: Instant, micros: u64) {
        self.notifications.saw_clock(sent_at, micros);
    }

    /// Returns where this runtime listens. Begins to listen if it did not.
    pub(super) async fn listen(self: &Arc<Self>) -> Result<Name, StoreError> {
        let runtime = current_runtime()?;
        let connect = |attempt| {
            let (listener, config) = (Arc::downgrade(self), self.config.clone());
            runtime.spawn(ListenerTask { listener, config, runtime: runtime.id() }.run(attempt));
        };
        let (name, _) = self.listening.get(runtime.id(), connect).await?;
        Ok(name)
    }
}

/// The task that listens on one runtime. Keeps its store alive only while it delivers.
struct ListenerTask {
    listener: Weak<Listener>,
    config: Arc<Config>,
    runtime: runtime::Id,
}

/// Two connections. One sleeps. The other holds the lock that marks this process as listening, and
/// the lock that the first requests. It reads the messages, and is otherwise idle, so that the
/// server notices its end at once.
struct ListenerConnections {
    sleeper: Conn,
    reader: Conn,
    name: Name,
}

impl ListenerTask {
    async fn run(self, attempt: Attempt<Listening>) {
        let id = attempt.id;
        let _forget = ForgetListener { task: &self, id };
        let connected = unless_panics(ListenerConnections::connect(&self.config)).await;
        let (until, dropped) = oneshot::channel();
        let outcome = match &connected {
            Ok(connections) => Ok((connections.name.clone(), Arc::new(until))),
            Err(error) => Err(error.clone()),
        };
        if let Some(listener) = self.listener.upgrade() {
            listener.listening.settle(self.runtime, id, &outcome);
        }
        attempt.finish(outcome);
        if let Ok(connections) = connected {
            connections.listen(&self, dropped).await;
        }
    }

    fn deliver(&self, subscriber: &[u8], message: &[u8]) {
        let Some(listener) = self.listener.upgrade() else { return };
        let id = u64::from_str_radix(&String::from_utf8_lossy(subscriber), 16);
        // Names are text, and so are all messages about them.
        if let (Ok(id), Ok(message)) = (id, std::str::from_utf8(message)) {
            listener.notifications.deliver(id, message);
        }
    }
}

/// Forgets the task, also when a runtime ends and takes the connections along.
struct ForgetListener<'a> {
    task: &'a ListenerTask,
    id: u64,
}

impl Drop for ForgetListener<'_> {
    fn drop(&mut self) {
        if let Some(listener) = self.task.listener.upgrade() {
            listener.listening.forget(self.id);
            listener.notifications.interrupted();
        }
    }
}

impl ListenerConnections {
    async fn connect(config: &Config) -> Result<Self, StoreError> {
        let reader = Live::connect(config).await?.connection;
        let sleeper = Live::connect(config).await?.connection;
        let name: Name = format!("{:016x}:{}", rand::random::<u64>(), sleeper.id()).into();
        let mut connections = Self { sleeper, reader, name };
        let acquire_locks = format!(
            "DO GET_LOCK('lockattr:{0}', 0), GET_LOCK('lockattr:sleep:{0}', 0)",
            connections.name
        );
        match timeout(config.timing.connect_timeout, connections.reader.query_drop(acquire_locks))
            .await
        {
            Ok(Ok(())) => Ok(connections),
            Ok(Err(error)) => Err(error_from(&config.address, error).not_sent()),
            Err(_) => Err(no_reply().not_sent()),
        }
    }

    /// Listens until one of the connections fails, or the store is gone.
    async fn listen(self, listening: &ListenerTask, mut dropped: oneshot::Receiver<()>) {
        let Self { mut sleeper, mut reader, name } = self;
        let timing = &listening.config.timing;
        let limit = timing.response_timeout;
        let sleeper_id = sleeper.id();
        let mut heartbeat = interval(timing.heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        {
            let mut sleeping = Box::pin(wait_for_notification(&mut sleeper, &name, limit).fuse());
            loop {
                tokio::select! {
                    _ = &mut dropped => break,
                    _ = heartbeat.tick() => {
                        if !matches!(timeout(limit, reader.ping()).await, Ok(Ok(()))) {
                            break;
                        }
                    }
                    woken = &mut sleeping => {
                        drop(sleeping);
                        match woken {
                            Some(true) => {
                                let read = read_notifications(&mut reader, &name, listening);
                                if !matches!(timeout(limit, read).await, Ok(Ok(()))) {
                                    break;
                                }
                            }
                            Some(false) => {}
                            None => break,
                        }
                        sleeping = Box::pin(wait_for_notification(&mut sleeper, &name, limit).fuse());
                    }
                }
            }
        }
        // From here on no message arrives. The other connection would sleep on.
        let end = async {
            let unregister = format!("DO RELEASE_LOCK('lockattr:{name}')");
            reader.query_drop(unregister).await?;
            let unread = format!("DELETE FROM lockattr_v2_notifications WHERE listener = '{name}'");
            reader.query_drop(unread).await?;
            reader.query_drop(format!("KILL {sleeper_id}")).await
        };
        let _in_time = timeout(limit, end).await;
        abandon(sleeper);
        abandon(reader);
    }
}

/// Delivers the notifications, and then deletes them.
async fn read_notifications(
    reader: &mut Conn,
    name: &str,
    listening: &ListenerTask,
) -> Result<(), Error> {
    let read = "SELECT id, subscriber, message FROM lockattr_v2_notifications WHERE listener = ? \
                ORDER BY id";
    let read: Vec<(u64, Vec<u8>, Vec<u8>)> = reply::exec(reader, read, (name,)).await?;
    for (_, subscriber, message) in &read {
        listening.deliver(subscriber, message);
    }
    // A later one may have got a smaller number, so each is named.
    let ids = read.iter().map(|(id, ..)| id.to_string()).collect::<Vec<_>>().join(", ");
    match read[..] {
        [] => Ok(()),
        [(id, ..)] => {
            let delete = "DELETE FROM lockattr_v2_notifications WHERE listener = ? AND id = ?";
            reader.exec_drop(delete, (name, id)).await
        }
        _ => {
            let delete = "DELETE FROM lockattr_v2_notifications WHERE listener = ";
            reader.query_drop(format!("{delete}'{name}' AND id IN ({ids})")).await
        }
    }
}

/// Sleeps on the server. Returns whether there may be notifications; `None` if the connection is
/// unusable.
async fn wait_for_notification(sleeper: &mut Conn, name: &Name, limit: Duration) -> Option<bool> {
    let sleep = exec_first(sleeper, "CALL lockattr_v2_sleep(?, ?)", (&**name, MAX_SLEEP.as_secs()));
    match timeout(MAX_SLEEP + limit, sleep).await {
        // It slept to the end.
        Ok(Ok(Some(Some(0_i64)))) => Some(false),
        // The lock is free: the other connection is gone.
        Ok(Ok(Some(Some(_)))) => None,
        // There were notifications before it slept, or it was interrupted, which is an error or no
        // value.
        Ok(Ok(None | Some(None))) => Some(true),
        Ok(Err(Error::Server(error))) if error.code == INTERRUPTED => Some(true),
        Ok(Err(_)) | Err(_) => None,
    }
}

const INTERRUPTED: u16 = 1317;

fn no_reply() -> StoreError {
    StoreError::new("the listening connection did not reply in time")
}
