//! Where a store tells a manager what concerns its claims.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::FencingToken;
use crate::lock::token::OwnerToken;
use crate::platform::entropy::random_bits;
use crate::platform::sync::{NameHasher, SHARDS};

/// A manager's inbox: what its claims wait for, and where stores put the news.
///
/// A store that lets claims stand in line gets it by [`Store::listen`](super::Store::listen), and
/// may be told the same twice: an inbox does not mind.
///
/// A test of a store makes one by hand:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::time::Duration;
/// use lockattr::store::{
///     Acquire, Acquiring, Claim, Inbox, LockKey, MemoryStore, News, Releasing, Sharing, Store,
///     Waiting,
/// };
///
/// let store = MemoryStore::new();
/// let inbox = Arc::new(Inbox::new(|_name| {}));
/// store.listen(&inbox);
/// let claim = || -> Result<_, lockattr::Error> {
///     let key = LockKey::new("lock:", "stock")?;
///     Ok(Arc::new(Claim::of(&inbox, key, [], Sharing::Exclusive, "service=test")))
/// };
/// let (first, second, ttl) = (claim()?, claim()?, Duration::from_secs(10));
///
/// let expected = inbox.expect(second.token());
/// store.acquire(&Acquiring::new(first.clone(), ttl)).await?;
/// let answer = store.acquire(&Acquiring::new(second.clone(), ttl).waiting(Waiting::InLine)).await?;
/// assert!(matches!(answer, Acquire::Held { in_line: Some(_), .. }));
/// store.release(&[Releasing::new(first)]).await;
/// assert!(matches!(expected.news().await, News::Granted(_)));
/// # Ok(())
/// # }
/// ```
pub struct Inbox {
    id: u64,
    /// By the tokens' last bits, so that claims seldom meet.
    expected: [Shard; SHARDS],
    /// How many claims expect news.
    waiting: AtomicUsize,
    on_wanted: OnWanted,
    on_lost: OnLost,
    on_unclaimed: OnLost,
    /// Where it is at the other end of a wire, what sends it the news.
    #[cfg(any(feature = "__sim", feature = "testing"))]
    on_news: Option<OnNews>,
}

/// What some claims wait for.
type Shard = Mutex<HashMap<OwnerToken, Arc<Slot>, NameHasher>>;

/// What is told the news for a claim.
#[cfg(any(feature = "__sim", feature = "testing"))]
type OnNews = Box<dyn Fn(OwnerToken, News) + Send + Sync>;

/// What hears the token of a claim that lost its lock, or that does not want what it was granted.
type OnLost = Box<dyn Fn(OwnerToken) + Send + Sync>;

/// What is told that a lock is wanted.
type OnWanted = Box<dyn Fn(Option<&str>) + Send + Sync>;

/// What came for one claim and was not read yet.
#[derive(Debug, Default)]
struct Slot {
    news: Mutex<Option<News>>,
    came: Notify,
}

/// What a store tells a claim that stands in line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It has the lock now.
    Granted(Grant),
    /// It may have been forgotten, or the lock ends by itself: ask again at this instant.
    AskAgain(Instant),
}

/// A lock that was handed to the next in line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The number of this acquisition.
    pub fencing: FencingToken,
    /// An instant that is certainly not after the start of the lease.
    pub since: Instant,
    /// Whether others stand in line behind.
    pub wanted: bool,
}

impl Grant {
    /// The lease that began no earlier than `since`.
    pub fn new(fencing: FencingToken, since: Instant, wanted: bool) -> Self {
        Self { fencing, since, wanted }
    }
}

impl Inbox {
    /// An inbox; `on_wanted` is told the name of each lock of its manager that others now wait for,
    /// or none where that may be any of them.
    pub fn new(on_wanted: impl Fn(Option<&str>) + Send + Sync + 'static) -> Self {
        let hasher = NameHasher::default();
        let shard = |_| Mutex::new(HashMap::with_hasher(hasher.clone()));
        Self {
            id: random_bits(),
            expected: std::array::from_fn(shard),
            waiting: AtomicUsize::new(0),
            on_wanted: Box::new(on_wanted),
            on_lost: Box::new(|_token| {}),
            on_unclaimed: Box::new(|_token| {}),
            #[cfg(any(feature = "__sim", feature = "testing"))]
            on_news: None,
        }
    }

    /// What stands for the inbox of this number in a server that is simulated or scripted: it is told
    /// nothing itself.
    #[cfg(any(feature = "__sim", feature = "testing"))]
    #[doc(hidden)]
    pub fn beyond_a_wire(
        id: u64,
        on_wanted: impl Fn(Option<&str>) + Send + Sync + 'static,
        on_news: impl Fn(OwnerToken, News) + Send + Sync + 'static,
    ) -> Self {
        Self { id, on_news: Some(Box::new(on_news)), ..Self::new(on_wanted) }
    }

    /// The same; `on_lost` is told the token of each claim of its manager that has lost its lock
    /// before its lease was over.
    #[must_use]
    pub fn on_lost(mut self, on_lost: impl Fn(OwnerToken) + Send + Sync + 'static) -> Self {
        self.on_lost = Box::new(on_lost);
        self
    }

    /// The same; `on_unclaimed` gets the token of each claim that was granted its lock and does not wait
    /// any more: the lock is to be given back now.
    #[must_use]
    pub fn on_unclaimed(
        mut self,
        on_unclaimed: impl Fn(OwnerToken) + Send + Sync + 'static,
    ) -> Self {
        self.on_unclaimed = Box::new(on_unclaimed);
        self
    }

    /// How many claims wait for news, or are about to.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// What the tokens of its manager's claims begin with.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The claim with this token has the lock. If it does not wait any more, its manager gives the lock
    /// back at once.
    pub fn granted(&self, token: OwnerToken, grant: Grant) {
        self.tell(token, News::Granted(grant));
    }

    /// The claim with this token has to ask again at `at`, if it hears nothing else.
    pub fn ask_again(&self, token: OwnerToken, at: Instant) {
        self.tell(token, News::AskAgain(at));
    }

    /// Messages may have been lost: all that wait ask again now, and any lock may be wanted.
    pub fn ask_all_again(&self) {
        (self.on_wanted)(None);
        let mut slots = Vec::new();
        for shard in &self.expected {
            slots.extend(locked(shard).iter().map(|(token, slot)| (*token, slot.clone())));
        }
        // A map's own order differs from run to run, and a simulated one is to be repeated.
        slots.sort_unstable_by_key(|(token, _)| token.order());
        let now = Instant::now();
        slots.iter().for_each(|(_, slot)| slot.put(News::AskAgain(now)));
    }

    /// The claim with this token has its lock no more, for certain, though its lease is not over: a
    /// store that hears of that says so, and its next renewal need not find out.
    pub fn lost(&self, token: OwnerToken) {
        (self.on_lost)(token);
    }

    /// Others wait for the lock of this name, which a claim of this manager has.
    pub fn wanted(&self, name: &str) {
        (self.on_wanted)(Some(name));
    }

    /// Expects news for the claim with this token, until what it returns is dropped: before the
    /// store is asked to let it stand in line.
    pub fn expect(self: &Arc<Self>, token: OwnerToken) -> Expected {
        let slot = Arc::<Slot>::default();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.expected(token).insert(token, slot.clone());
        Expected { inbox: self.clone(), token, slot }
    }

    /// Puts news where the claim with this token looks for them.
    pub(crate) fn tell(&self, token: OwnerToken, news: News) {
        #[cfg(any(feature = "__sim", feature = "testing"))]
        if let Some(on_news) = &self.on_news {
            return on_news(token, news);
        }
        let slot = self.expected(token).get(&token).cloned();
        match slot {
            Some(slot) => slot.put(news),
            None if matches!(news, News::Granted(_)) => (self.on_unclaimed)(token),
            None => {}
        }
    }

    /// What is expected for the claim with this token, and some others.
    fn expected(
        &self,
        token: OwnerToken,
    ) -> MutexGuard<'_, HashMap<OwnerToken, Arc<Slot>, NameHasher>> {
        // The remainder fits.
        locked(&self.expected[(token.order() % SHARDS as u128) as usize])
    }
}

fn locked(shard: &Shard) -> MutexGuard<'_, HashMap<OwnerToken, Arc<Slot>, NameHasher>> {
    // Nothing in there can panic half-way, so a poisoned lock is still good.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl Slot {
    fn put(&self, news: News) {
        *self.news() = Some(news);
        self.came.notify_one();
    }

    fn news(&self) -> MutexGuard<'_, Option<News>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim that waits for news; the example stands at [`Inbox`].
#[derive(Debug)]
#[must_use = "nothing is expected any more once it is dropped"]
pub struct Expected {
    inbox: Arc<Inbox>,
    token: OwnerToken,
    slot: Arc<Slot>,
}

impl Expected {
    /// The next news. Of several that came before it was asked, the last.
    ///
    /// # Cancel safety
    ///
    /// No news are lost if this is dropped.
    pub async fn news(&self) -> News {
        loop {
            if let Some(news) = self.slot.news().take() {
                return news;
            }
            self.slot.came.notified().await;
        }
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.inbox.expected(self.token).remove(&self.token);
        self.inbox.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
