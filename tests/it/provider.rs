//! A credentials provider that hangs, fails or panics when a test wants it.

use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lockattr::store::Credentials;

/// What the next question leads to.
#[derive(Clone)]
pub(crate) enum Reply {
    Answer(Credentials),
    Hang,
    Fail,
    Panic,
}

#[derive(Clone)]
pub(crate) struct Provider {
    reply: Arc<Mutex<Reply>>,
    asked: Arc<AtomicUsize>,
}

impl Provider {
    pub(crate) fn new(reply: Reply) -> Self {
        Self { reply: Arc::new(Mutex::new(reply)), asked: Arc::default() }
    }

    pub(crate) fn set(&self, reply: Reply) {
        *self.reply.lock().unwrap() = reply;
    }

    /// Whether the next answer is this user.
    pub(crate) fn is_next(&self, user: &str) -> bool {
        let reply = self.reply.lock().unwrap();
        matches!(&*reply, Reply::Answer(credentials) if credentials.user() == Some(user))
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// The function to pass to the store.
    pub(crate) fn function(
        &self,
    ) -> impl Fn() -> BoxFuture<'static, io::Result<Credentials>> + Send + Sync + 'static {
        let own = self.clone();
        move || {
            own.asked.fetch_add(1, Ordering::Relaxed);
            let reply = own.reply.lock().unwrap().clone();
            match reply {
                Reply::Answer(credentials) => async move { Ok(credentials) }.boxed(),
                Reply::Hang => pending().boxed(),
                Reply::Fail => async { Err(io::Error::other("the vault is sealed")) }.boxed(),
                Reply::Panic => panic!("the provider of a test panics with s3cret"),
            }
        }
    }
}
