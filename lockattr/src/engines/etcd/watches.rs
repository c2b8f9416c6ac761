//! The watches of one connection, all on one stream. Each is for one event, and is cancelled when
//! it is dropped.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use futures_util::stream::poll_fn;
use tokio::sync::{mpsc, oneshot};
use tonic::Streaming;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use super::call::{WATCH, stream};
use super::messages::{
    WatchCancelRequest, WatchCommand, WatchCreateRequest, WatchFilter, WatchRequest, WatchResponse,
};
use crate::platform::sync::{Mutex, MutexGuard};

/// The watches of one connection.
pub(super) struct Watches {
    channel: Channel,
    token: Option<MetadataValue<Ascii>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Requests to the member; `None` while there is no stream.
    requests: Option<mpsc::UnboundedSender<WatchRequest>>,
    slots: HashMap<i64, Slot>,
    next_id: i64,
    ended: bool,
}

/// Notifies one watch. If it is dropped unused, the outcome is unknown.
struct Slot {
    created: Option<oneshot::Sender<()>>,
    event: oneshot::Sender<()>,
}

/// A watch for the first event.
pub(super) struct Watch {
    watches: Arc<Watches>,
    id: i64,
    created: Option<oneshot::Receiver<()>>,
    event: oneshot::Receiver<()>,
}

/// What a watch learned: the event, or that it cannot be known any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchOutcome {
    Event,
    Unknown,
}

impl State {
    fn end(&mut self) {
        self.ended = true;
        self.requests = None;
        self.slots.clear();
    }
}

impl Watches {
    pub(super) fn new(channel: Channel, token: Option<MetadataValue<Ascii>>) -> Self {
        Self { channel, token, state: Mutex::default() }
    }

    /// Watches for the removal of this key.
    pub(super) fn removal(self: &Arc<Self>, key: &str) -> Watch {
        self.watch(key.into(), Vec::new(), WatchFilter::NoPut)
    }

    /// Watches for a write of a key in this range.
    pub(super) fn arrival(self: &Arc<Self>, from: &str, end: Vec<u8>) -> Watch {
        self.watch(from.into(), end, WatchFilter::NoDelete)
    }

    /// Watches from now on, not from a revision that was read before: etcd serves a watch of the
    /// past only every 100 ms, until it has caught up. So the caller must read again once the watch
    /// [is there](Watch::is_created).
    fn watch(self: &Arc<Self>, key: Vec<u8>, range_end: Vec<u8>, without: WatchFilter) -> Watch {
        let (created_sender, created) = oneshot::channel();
        let (event_sender, event) = oneshot::channel();
        let mut state = self.state();
        // As a `grpc-proxy` numbers the watches of a stream, whatever a request says.
        let id = state.next_id;
        state.next_id += 1;
        if !state.ended {
            let slot = Slot { created: Some(created_sender), event: event_sender };
            state.slots.insert(id, slot);
            let command =
                WatchCreateRequest { key, range_end, filters: vec![without.into()], watch_id: id };
            self.send(&mut state, WatchCommand::Create(command));
        }
        drop(state);
        Watch { watches: self.clone(), id, created: Some(created), event }
    }

    fn send(self: &Arc<Self>, state: &mut State, command: WatchCommand) {
        let command = WatchRequest { command: Some(command) };
        let Some(requests) = &state.requests else {
            let (requests, receiver) = mpsc::unbounded_channel();
            // Cannot fail: the receiver is in this function.
            drop(requests.send(command));
            state.requests = Some(requests);
            let (channel, token) = (self.channel.clone(), self.token.clone());
            tokio::spawn(listen(Arc::downgrade(self), channel, token, receiver));
            return;
        };
        // Fails only if the stream has just ended, and then all watches are notified.
        drop(requests.send(command));
    }

    /// Ends all watches.
    pub(super) fn end(&self) {
        self.state().end();
    }

    pub(super) fn have_ended(&self) -> bool {
        self.state().ended
    }

    fn dispatch(&self, response: &WatchResponse) {
        let mut state = self.state();
        if let Some(slot) = state.slots.get_mut(&response.watch_id)
            && response.created
            && let Some(created) = slot.created.take()
        {
            let _no_receiver = created.send(());
        }
        if !response.events.is_empty()
            && let Some(slot) = state.slots.remove(&response.watch_id)
        {
            let _no_receiver = slot.event.send(());
        }
        if response.canceled {
            state.slots.remove(&response.watch_id);
        }
        // A refused watch has no id, and a `grpc-proxy` gives its id to the next one.
        if response.created && response.canceled {
            state.end();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Dispatches the events of the stream. Keeps nothing else of the connection alive while it waits.
async fn listen(
    watches: Weak<Watches>,
    channel: Channel,
    token: Option<MetadataValue<Ascii>>,
    mut requests: mpsc::UnboundedReceiver<WatchRequest>,
) {
    let requests = poll_fn(move |cx| requests.poll_recv(cx));
    let opened = stream(&channel, token.as_ref(), WATCH, requests).await;
    let opened: Result<Streaming<WatchResponse>, _> = opened;
    if let Ok(mut stream) = opened {
        while let Ok(Some(response)) = stream.message().await {
            let Some(watches) = watches.upgrade() else { return };
            watches.dispatch(&response);
        }
    }
    if let Some(watches) = watches.upgrade() {
        watches.end();
    }
}

impl Watch {
    /// Returns once the member has created the watch, or failed to. Returns whether it did.
    pub(super) async fn is_created(&mut self) -> bool {
        match self.created.take() {
            Some(created) => created.await.is_ok(),
            None => true,
        }
    }

    /// Returns once the event has happened, or cannot be known any more.
    pub(super) async fn outcome(&mut self) -> WatchOutcome {
        match (&mut self.event).await {
            Ok(()) => WatchOutcome::Event,
            Err(_) => WatchOutcome::Unknown,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut state = self.watches.state();
        state.slots.remove(&self.id);
        if let Some(requests) = &state.requests {
            let cancel = WatchCommand::Cancel(WatchCancelRequest { watch_id: self.id });
            // Fails only if the stream has ended, and the watch with it.
            drop(requests.send(WatchRequest { command: Some(cancel) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::transport::Endpoint;

    use super::*;

    fn watches() -> Arc<Watches> {
        let channel = Endpoint::from_static("http://127.0.0.1:1").connect_lazy();
        Arc::new(Watches::new(channel, None))
    }

    fn created(watch_id: i64, canceled: bool) -> WatchResponse {
        WatchResponse { watch_id, created: true, canceled, events: Vec::new() }
    }

    /// Red without: the numbers from 0 on.
    #[tokio::test]
    async fn watches_have_the_numbers_that_a_proxy_gives_them() {
        let watches = watches();
        let (mut first, mut second) = (watches.removal("a"), watches.removal("b"));
        watches.dispatch(&created(0, false));
        watches.dispatch(&created(1, false));
        assert!(first.is_created().await && second.is_created().await);
    }

    /// A proxy gives the number of a refused watch to the next one.
    ///
    /// Red without: the end at a refusal.
    #[tokio::test]
    async fn a_refused_watch_ends_all_of_its_stream() {
        let watches = watches();
        let mut watch = watches.removal("a");
        watches.dispatch(&created(-1, true));
        assert!(watches.have_ended());
        assert!(!watch.is_created().await);
    }
}
