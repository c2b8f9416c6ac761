//! Processes that campaign for one key, and the resource that they write to.

use std::cell::{Cell, OnceCell};
use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_history::{JudgedTerms, TermKind, TermStep, TermViolation, check_terms};
use lockattr_tests::{Engine, Node, TermFile, Wires, eventually, in_time, node, with_query};
use tempfile::TempDir;

use crate::engine_faults::lease_of;

/// One test on one store.
pub(crate) struct Campaign<'a, E> {
    pub(crate) engine: &'a E,
    key: String,
    resource: TermFile,
    /// The number of processes so far.
    processes: Cell<u32>,
    /// What each process is started with beside its URL.
    progress_within: Duration,
    /// The lease of each process, in seconds.
    lease: u32,
    /// Reads the waiters.
    observer: OnceCell<LockManager>,
    _directory: TempDir,
}

/// A process that campaigns.
pub(crate) struct Leader {
    pub(crate) node: Node,
    pub(crate) process: u32,
    resource: TermFile,
}

impl<'a, E: Engine> Campaign<'a, E> {
    pub(crate) fn on(engine: &'a E, key: impl Into<String>) -> Self {
        let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        let resource = TermFile::at(directory.path().join("terms"));
        Self {
            engine,
            key: key.into(),
            resource,
            processes: Cell::new(0),
            progress_within: Duration::ZERO,
            lease: LEASE,
            observer: OnceCell::new(),
            _directory: directory,
        }
    }

    /// Makes each leader report progress within this time.
    pub(crate) fn progress_within(self, progress_within: Duration) -> Self {
        Self { progress_within, ..self }
    }

    /// Makes leases so short that a busy machine may lose them.
    pub(crate) fn short_leases(self) -> Self {
        Self { lease: 6, ..self }
    }

    /// How long a leader leads after its last sign of life, at most.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_secs(self.lease.into())
    }

    fn settings(&self) -> String {
        lease_of::<E>(self.lease)
    }

    /// Acquires the note of a term of this key, as its last leader had it, and then other locks of that leader.
    pub(crate) async fn note_and_other_locks(&self) -> (LockManager, LockGuard, Vec<LockGuard>) {
        // The name of the note begins with this, and goes on with that of the lock.
        let settings = format!("{}&prefix=lockattr:term:lock:", self.settings());
        let last = LockManager::connect(&with_query(&self.engine.url(), &settings)).await.unwrap();
        let acquire = async |key: String| last.acquire(key, LockOptions::new()).await.unwrap();
        let note = acquire(self.key.clone()).await;
        let mut others = Vec::new();
        for nth in 0..8 {
            others.push(acquire(format!("{}:{nth}", self.key)).await);
        }
        (last, note, others)
    }

    /// Starts a process that campaigns.
    pub(crate) fn process(&self) -> Leader {
        self.process_at(&self.engine.url())
    }

    /// Starts a process with this number of threads, or all on its main thread.
    pub(crate) fn process_with_threads(&self, threads: usize) -> Leader {
        self.start(&with_query(&self.engine.url(), &self.settings()), threads)
    }

    /// Starts a process whose network can fail. It asks again when a reply is late, and campaigns on.
    pub(crate) fn process_over(&self, wires: &Wires) -> Leader {
        self.process_at(&wires.url_with(ASKS_AGAIN))
    }

    /// Starts a process that reaches the store by this URL.
    pub(crate) fn process_at(&self, url: &str) -> Leader {
        self.start(&with_query(url, &self.settings()), 2)
    }

    /// Starts a process with exactly this URL.
    pub(crate) fn start(&self, url: &str, threads: usize) -> Leader {
        let process = self.processes.get();
        self.processes.set(process + 1);
        let node = node!(
            "lead",
            url = url,
            key = self.key,
            resource = self.resource.path(),
            process = process,
            progress_within = self.progress_within.as_millis(),
            threads = threads,
        );
        Leader { node, process, resource: self.resource.clone() }
    }

    /// Waits until the first of these leads and the others follow it, in this order. Returns its term.
    pub(crate) async fn begins(&self, all: &mut [&mut Leader]) -> u64 {
        let [leader, followers @ ..] = all else { unreachable!("no process") };
        leader.starts().await;
        let term = leader.leads().await;
        for (before, follower) in followers.iter_mut().enumerate() {
            follower.starts().await;
            self.sees_follow(follower, leader.id()).await;
            self.waits(before + 1).await;
        }
        term
    }

    /// Makes the leader of this term resign. Returns the term of the other process, which waits.
    pub(crate) async fn hands_over(&self, old: &mut Leader, new: &mut Leader, term: u64) -> u64 {
        self.waits(1).await;
        old.resigns(term).await;
        self.follows(old, new).await
    }

    /// Returns the term of a process that waits, after that of another, which campaigns again.
    ///
    /// A process that gets no core for seconds loses its place in the queue, and on a quorum a place reserves nothing.
    /// The old leader may then be the next too, and must resign once more.
    pub(crate) async fn follows(&self, old: &mut Leader, new: &mut Leader) -> u64 {
        in_time(async {
            loop {
                let again = tokio::select! {
                    next = new.leads() => return next,
                    again = old.leads() => again,
                };
                self.waits(1).await;
                old.resigns(again).await;
            }
        })
        .await
    }

    /// Waits until this many processes wait in the store's queue.
    pub(crate) async fn waits(&self, followers: usize) {
        if !E::OUTLIVES_ITS_CONNECTION {
            // The server does not tell.
            return;
        }
        let observer = self.observer.get_or_init(|| {
            LockManager::builder().url(self.engine.url()).build().expect("a valid URL")
        });
        eventually(&format!("{followers} wait for `{}`", self.key), async || {
            // Another process may send what the store lists, or a master may just be replaced.
            let held = observer.held_locks().await.unwrap_or_default();
            let ours = held.iter().find(|held| held.key == self.key);
            ours.is_some_and(|held| held.waiting >= followers as u64)
        })
        .await;
    }

    /// Waits until this process sees that another one leads.
    pub(crate) async fn sees_follow(&self, follower: &mut Leader, leader: u32) {
        // Some stores do not name the process.
        let seen = [format!("leader {leader} "), "leader - ".to_owned()];
        let what = format!("`{}`: {seen:?}", self.key);
        eventually(&what, async || {
            let said = follower.ask("leader").await;
            seen.iter().any(|seen| said.starts_with(seen))
        })
        .await;
    }

    /// Waits until this process sees that another one leads in this term, or in an unknown one where the store does
    /// not show it.
    pub(crate) async fn sees(&self, observer: &mut Leader, leader: u32, term: u64) {
        let (shown, unshown) = (format!("leader {leader} {term}"), format!("leader {leader} -"));
        let seen = [shown, unshown, UNSHOWN.to_owned()];
        let seen = if E::OUTLIVES_ITS_CONNECTION { &seen[..1] } else { &seen[..] };
        let what = format!("`{}`: {seen:?}", self.key);
        eventually(&what, async || seen.contains(&observer.ask("leader").await)).await;
    }

    /// The process that wrote last.
    pub(crate) fn last_leader(&self) -> Option<u32> {
        let events = self.resource.events();
        events.iter().rfind(|event| event.step == TermStep::Wrote).map(|event| event.process)
    }

    /// Fails if the history breaks a rule.
    fn judged(&self) -> JudgedTerms {
        let found = match check_terms(&self.resource.events()) {
            Ok(judged) => return judged,
            Err(found) => found,
        };
        // Where the connection is the lock, the server notices its end before the leader does.
        let allowed = |found: &TermViolation| {
            !E::OUTLIVES_ITS_CONNECTION && found.kind == TermKind::LedBesideAnother
        };
        let found: Vec<_> =
            found.iter().filter(|found| !allowed(found)).map(ToString::to_string).collect();
        assert!(found.is_empty(), "the terms of `{}` are broken:\n{}", self.key, found.join("\n"));
        JudgedTerms::default()
    }

    /// Ends these processes in order, judges the history, and expects nothing in the store.
    pub(crate) async fn over(self, all: impl IntoIterator<Item = Leader>) -> JudgedTerms {
        for mut leader in all {
            assert!(leader.node.finish().await.success(), "process {}", leader.process);
        }
        let judged = self.judged();
        let left = async || -> Vec<String> {
            let left = self.engine.left().await;
            left.into_iter().filter(|line| line.contains(&self.key)).collect()
        };
        let what = format!("nothing of `{}` is left", self.key);
        eventually(&what, async || left().await.is_empty()).await;
        judged
    }
}

impl Leader {
    /// The number of its process in the system, by which others see it.
    pub(crate) fn id(&self) -> u32 {
        self.node.id()
    }

    /// Waits until it leads. Returns the number of its term.
    pub(crate) async fn leads(&mut self) -> u64 {
        let line = self.node.line().await;
        let term = line.strip_prefix("leads ").and_then(|term| term.parse().ok());
        term.unwrap_or_else(|| panic!("process {} said: {line}", self.process))
    }

    /// Makes it resign.
    pub(crate) async fn resigns(&mut self, term: u64) {
        self.node.say("resign").await;
        self.ends(term).await;
    }

    /// Waits until its body in this term has ended.
    pub(crate) async fn ends(&mut self, term: u64) {
        self.expect(&format!("ended {term}")).await;
    }

    /// Makes it campaign.
    pub(crate) async fn starts(&mut self) {
        self.expect("ready").await;
        self.node.say("campaign").await;
    }

    /// Expects this to be the next line.
    pub(crate) async fn expect(&mut self, line: &str) {
        assert_eq!(self.node.line().await, line, "process {}", self.process);
    }

    pub(crate) async fn ask(&mut self, order: &str) -> String {
        self.node.say(order).await;
        self.node.line().await
    }

    /// How many of its writes were accepted in this term.
    pub(crate) fn writes(&self, term: u64) -> usize {
        self.count(term, |step| step == TermStep::Wrote)
    }

    /// How many of its writes were refused in this term.
    pub(crate) fn refused(&self, term: u64) -> usize {
        self.count(term, |step| matches!(step, TermStep::Refused { .. }))
    }

    fn count(&self, term: u64, is: impl Fn(TermStep) -> bool) -> usize {
        let events = self.resource.events();
        let own = events.iter().filter(|event| (event.process, event.term) == (self.process, term));
        own.filter(|event| is(event.step)).count()
    }

    /// Waits until `more` further writes of it are accepted in this term.
    pub(crate) async fn goes_on(&self, term: u64, more: usize) {
        let before = self.writes(term);
        let what = format!("process {} writes in term {term}", self.process);
        eventually(&what, async || self.writes(term) >= before + more).await;
    }
}

/// Where the connection is the lock, no value says who has it.
const UNSHOWN: &str = "leader - -";

/// A leader renews after a third of this, and leads on if it gets no core for ten seconds.
const LEASE: u32 = 15;

/// For a process whose requests may get no reply.
const ASKS_AGAIN: &str = "response_timeout=1500ms&connect_timeout=2s";
