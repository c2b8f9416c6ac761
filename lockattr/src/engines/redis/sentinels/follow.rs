//! The task that is subscribed to the sentinels: the store leaves a replaced master at once, even
//! if that still replies.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::Sentinels;
use crate::engines::dial::handshake_limit;
use crate::engines::redis::endpoint::{Endpoint, in_time};

/// The channel on which sentinels announce a new master.
const SWITCHED: &str = "+switch-master";

impl Sentinels {
    /// Subscribes to them on this runtime, unless one of its tasks has.
    pub(super) fn follow(self: &Arc<Self>) {
        let runtime = Handle::current();
        let mut followers = self.followers.lock();
        // Remove those of runtimes that have ended.
        followers.retain(|_, follower| !follower.is_finished());
        followers.entry(runtime.id()).or_insert_with(|| {
            let follower = Follower {
                sentinels: Arc::downgrade(self),
                name: self.name.clone(),
                limit: self.limit,
                heartbeat: self.heartbeat,
                changed: Notify::new(),
            };
            runtime.spawn(follower.run(self.endpoints.clone())).abort_handle()
        });
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        let followers = self.followers.lock();
        followers.values().for_each(AbortHandle::abort);
    }
}

/// Holds only a weak reference to the sentinels, so that it ends with them.
struct Follower {
    sentinels: Weak<Sentinels>,
    name: String,
    limit: Duration,
    heartbeat: Duration,
    changed: Notify,
}

impl Follower {
    async fn run(self, endpoints: Vec<Endpoint>) {
        let listeners = join_all(endpoints.iter().map(|endpoint| self.listen(endpoint)));
        tokio::select! {
            _ = listeners => {}
            () = self.poll() => {}
        }
    }

    /// Stays subscribed to one sentinel.
    async fn listen(&self, endpoint: &Endpoint) {
        loop {
            let connecting = async {
                let mut listener = endpoint.listen(None, self.limit).await?;
                in_time(handshake_limit(self.limit), listener.subscribe(SWITCHED)).await?;
                redis::RedisResult::Ok(listener)
            };
            if let Ok(listener) = connecting.await {
                // Earlier messages are unknown.
                self.changed.notify_one();
                let mut messages = listener.into_on_message();
                while let Some(message) = messages.next().await {
                    let text: String = message.get_payload().unwrap_or_default();
                    // The name is the first word; there may be other masters.
                    if text.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with(' ')) {
                        self.changed.notify_one();
                    }
                }
            }
            sleep(self.heartbeat).await;
        }
    }

    /// Queries all sentinels when one has sent a message: that one alone may have learnt late of a
    /// failover before the last. Also queries them regularly, in case a message was lost.
    async fn poll(&self) {
        loop {
            let _changed_or_not = timeout(self.heartbeat, self.changed.notified()).await;
            let Some(sentinels) = self.sentinels.upgrade() else { return };
            if let Err(error) = sentinels.query().await {
                tracing::debug!(error.message = %error, "the sentinels do not report the master");
            }
        }
    }
}
