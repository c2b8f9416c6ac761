//! One server, over a small pool of connections.

use std::error::Error as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures_util::future::join_all;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind};
use tokio::time::Instant;

use super::call::Call;
use super::config::Config;
use super::heartbeat::Demotion;
use super::link::{Link, Live};
use super::post::Post;
use super::replicas::{Answer, Replicas};
use super::scripts::Scripts;
use super::survey::{Page, scan};
use crate::store::{LockKey, StoreError};

/// The connection on which messages come in.
const INBOX: usize = 0;

/// The connections to one server. All commands for one key travel on one of them, its place, so
/// that they keep their order.
pub(super) struct Node {
    links: Vec<Arc<Link>>,
    /// Over how many of them the keys are spread.
    spread: usize,
    pub(super) replicas: Replicas,
}

/// What became of a question to a server that is not the master any more.
const NO_MASTER: &str = "it is not the master any more, and had not answered";

/// What a script does to leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Does {
    /// Takes locks, where the server may grant any.
    Take,
    /// Makes leases longer.
    Lengthen,
    /// Makes leases shorter, not ending them now.
    Shorten,
    /// Gives locks back.
    Free,
    /// Nothing.
    Look,
}

/// A command that was sent, and what came back.
pub(super) struct Sent<T> {
    pub(super) link: Arc<Link>,
    pub(super) live: Arc<Live>,
    pub(super) outcome: RedisResult<Answer<T>>,
}

impl Node {
    pub(super) fn new(config: &Config, scripts: &Arc<Scripts>, post: Option<&Arc<Post>>) -> Self {
        let link = |place| {
            let post = post.filter(|_| place == INBOX).cloned();
            Link::new(config.clone(), scripts.clone(), post)
        };
        let replicas = Replicas::new(&config.timing);
        let spread = config.timing.multiplexed();
        let links = spread + usize::from(replicas.are_needed());
        Self { links: (0..links).map(link).collect(), spread, replicas }
    }

    /// The place of a key: the number of its connection.
    pub(super) fn place(&self, key: &LockKey) -> usize {
        if self.spread == 1 {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        key.name().hash(&mut hasher);
        // The remainder is smaller than a `usize` length.
        (hasher.finish() % self.spread as u64) as usize
    }

    /// The connection in a place, of which there may be more than connections.
    ///
    /// The server keeps a connection waiting for replicas; renewals would come too late behind
    /// acquisitions that wait so, and have one of their own. So has what makes a lease shorter: behind
    /// the renewals that are under way, or one of those would make it long again.
    pub(super) fn link(&self, place: usize, does: Does) -> &Arc<Link> {
        let apart = matches!(does, Does::Lengthen | Does::Shorten);
        match apart && self.replicas.are_needed() {
            true => &self.links[self.spread],
            false => &self.links[place % self.spread],
        }
    }

    /// Runs a script; and over which connection.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        place: usize,
        does: Does,
        script: &Call<'_>,
    ) -> Result<(Answer<T>, Arc<Live>), StoreError> {
        let Sent { link, live, outcome } = self.send(place, does, false, script).await?;
        Ok((link.note(&live, outcome)?, live))
    }

    /// Sends a script, and looks at no error but that nothing was sent; `asking` if another node of
    /// a cluster said to.
    pub(super) async fn send<T: FromRedisValue>(
        &self,
        place: usize,
        does: Does,
        asking: bool,
        script: &Call<'_>,
    ) -> Result<Sent<T>, StoreError> {
        let link = self.link(place, does).clone();
        let live = link.get().await?;
        if let (Does::Take, Some(grants)) = (does, live.grants) {
            grants.check(&live.address)?;
        }
        let counts = matches!(does, Does::Take | Does::Lengthen) && self.replicas.are_needed();
        live.combiner.send_first(&link, &live);
        let connection = &mut live.connection();
        // By its digest; the client loads it where the server does not know it.
        let answer = async {
            match (counts, asking) {
                (false, false) => script.run(connection).await.map(Answer::alone),
                (true, _) => self.replicas.invoke(connection, asking, script).await,
                (false, true) => Replicas::NONE.invoke(connection, asking, script).await,
            }
        };
        let outcome = until_demoted(&link, &live.demotion, answer).await;
        Ok(Sent { link, live, outcome })
    }

    /// From here on each connection has to raise the counters again.
    pub(super) fn lower(&self) {
        self.links.iter().for_each(|link| link.lower());
    }

    /// Runs a command that has no key.
    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let link = self.link(0, Does::Look);
        let live = link.get().await?;
        let outcome = command.query_async(&mut live.connection()).await;
        link.note(&live, outcome)
    }

    /// The names of all that the server has under `prefix`, some of them perhaps twice.
    pub(super) async fn names(&self, prefix: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        let (mut names, mut cursor) = (Vec::new(), b"0".to_vec());
        loop {
            let (next, page): Page = self.ask(&scan(&cursor, prefix)).await.map_err(advised)?;
            names.extend(page);
            cursor = next;
            if cursor == b"0" {
                return Ok(names);
            }
        }
    }

    /// Sees to it that messages for this inbox come in.
    pub(super) async fn subscribe(&self, subscriber: u64) -> Result<(), StoreError> {
        self.links[INBOX].subscribe(subscriber).await
    }

    /// Asks on every connection whether the server answers, so that the first locks need not wait
    /// for theirs.
    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        let pings = self.links.iter().map(|link| async move {
            let live = link.get().await?;
            let outcome = redis::cmd("PING").query_async::<()>(&mut live.connection()).await;
            link.note(&live, outcome)
        });
        join_all(pings).await.into_iter().collect()
    }

    /// Whether the connection in a place has brought an answer since then.
    pub(super) fn answered_since(&self, place: usize, since: Instant) -> bool {
        self.link(place, Does::Take).answered_since(since)
    }

    /// How many connections there are.
    pub(super) fn connections(&self) -> usize {
        self.links.len()
    }
}

/// The answer; or an error as soon as the server is known not to be the master any more, where sentinels say
/// which one is.
pub(super) async fn until_demoted<T>(
    link: &Link,
    demotion: &Demotion,
    answer: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    if link.config.server.sentinels().is_none() {
        return answer.await;
    }
    tokio::select! {
        biased;
        answer = answer => answer,
        () = demotion.notified() => Err((ErrorKind::Client, NO_MASTER).into()),
    }
}

/// What to do about it, where a user may not list names.
fn advised(error: StoreError) -> StoreError {
    let said = error.source().and_then(|said| said.downcast_ref::<RedisError>());
    let forbidden = ErrorKind::Server(ServerErrorKind::NoPerm);
    match said.is_some_and(|said| said.kind() == forbidden) {
        true => StoreError::new(format!(
            "{error}; give the user the right to list locks: `ACL SETUSER … +scan`"
        ))
        .with_source(error),
        false => error,
    }
}
