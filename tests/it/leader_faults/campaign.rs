//! Processes that campaign for one key, and the resource that they write to.

use std::cell::Cell;
use std::time::Duration;

use lockattr::{LockGuard, LockManager, LockOptions};
use lockattr_history::{JudgedTerms, TermKind, TermStep, TermViolation, check_terms};
use lockattr_tests::{Engine, Node, TermFile, Wires, eventually, node, with_query};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use super::{LIMIT, SLACK};

/// One test on one store.
pub(crate) struct Campaign<'a, E> {
    pub(crate) engine: &'a E,
    key: String,
    resource: TermFile,
    /// The number of processes so far.
    processes: Cell<u32>,
    /// What each process is started with beside its URL.
    progress_within: Duration,
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
        let (processes, progress_within) = (Cell::new(0), Duration::ZERO);
        let key = key.into();
        Self { engine, key, resource, processes, progress_within, _directory: directory }
    }

    /// Makes each leader report progress within this time.
    pub(crate) fn progress_within(self, progress_within: Duration) -> Self {
        Self { progress_within, ..self }
    }

    /// Settings for leases that are short, but longer than [`SLACK`], and for timeouts that a loaded machine meets.
    fn settings() -> String {
        let leases = if E::SHORT == "ttl=2s" { "ttl=6s" } else { E::SHORT };
        format!("response_timeout=1500ms&connect_timeout=2s&{leases}")
    }

    /// How long after a leader's last sign of life another leads at the latest, without [`SLACK`]: where a dead process
    /// is noticed by its session, this is the time of the session.
    pub(crate) const REPLACED_WITHIN: Duration =
        if E::GIVES_UP_WITHIN.as_secs() > 2 { E::GIVES_UP_WITHIN } else { LEASE };

    /// Acquires the note of a term of this key, as its last leader had it, and then other locks of that leader.
    pub(crate) async fn note_and_other_locks(&self) -> (LockManager, LockGuard, Vec<LockGuard>) {
        // The name of the note begins with this, and goes on with that of the lock.
        let settings = format!("{}&prefix=lockattr:term:lock:", Self::settings());
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
        self.start(&with_query(&self.engine.url(), &Self::settings()), threads)
    }

    /// Starts a process whose network can fail.
    pub(crate) fn process_over(&self, wires: &Wires) -> Leader {
        self.process_at(&wires.url())
    }

    /// Starts a process that reaches the store by this URL.
    pub(crate) fn process_at(&self, url: &str) -> Leader {
        self.start(&with_query(url, &Self::settings()), 2)
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

    /// Waits until the first of these leads and the others follow it. Returns its term.
    pub(crate) async fn begins(&self, all: &mut [&mut Leader]) -> u64 {
        let [leader, followers @ ..] = all else { unreachable!("no process") };
        leader.starts().await;
        let term = leader.leads().await;
        for follower in followers {
            follower.starts().await;
            // Its campaign asked the store before.
            self.sees_follow(follower, leader.id()).await;
        }
        term
    }

    /// Waits until a process that has lost its term follows another one: it pauses before it campaigns again.
    pub(crate) async fn follows_again(&self, follower: &mut Leader, leader: u32) {
        self.sees_follow(follower, leader).await;
        // Most stores do not tell whether it waits, and a busy machine sends its request late.
        sleep(LONGEST_PAUSE + Duration::from_secs(2)).await;
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
        let mut said = String::new();
        let what = format!("`{}`: {seen:?}", self.key);
        eventually(&what, async || {
            said = observer.ask("leader").await;
            seen.contains(&said)
        })
        .await;
        measured(&format!("shown: {said}"));
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
        let limit = Self::REPLACED_WITHIN * 2 + SLACK;
        let gone = eventually(&what, async || left().await.is_empty());
        if timeout(limit, gone).await.is_err() {
            panic!("left in the store: {:#?}", left().await);
        }
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
        self.leads_within(LIMIT / 2).await
    }

    /// Fails unless it leads in time, which is printed.
    pub(crate) async fn leads_within(&mut self, limit: Duration) -> u64 {
        let since = Instant::now();
        let Some(line) = self.node.line_within(LIMIT / 2).await else {
            panic!("process {} does not lead", self.process)
        };
        let after = since.elapsed();
        let term = line.strip_prefix("leads ").unwrap_or_else(|| panic!("it said: {line}"));
        assert!(after < limit, "it led after {after:?}, and not within {limit:?}");
        measured(&format!("process {} led after {after:?} of {limit:?}", self.process));
        term.parse().expect("a number")
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

    /// The same, if it takes a lease.
    pub(crate) async fn expect_within(&mut self, limit: Duration, line: &str) {
        let said = self.node.line_within(limit).await;
        assert_eq!(said.as_deref(), Some(line), "process {}", self.process);
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

/// Shown by `--nocapture`.
#[expect(
    clippy::print_stderr,
    reason = "the margin of a promise, for those who run the test by hand"
)]
pub(super) fn measured(text: &str) {
    eprintln!("{text}");
}

/// Where the connection is the lock, no value says who has it.
const UNSHOWN: &str = "leader - -";

/// The pause between two terms of a process: a tenth of the TTL.
const LONGEST_PAUSE: Duration = Duration::from_millis(600);

/// The lease where no session counts. Longer than [`SLACK`], as is the interval at which a follower asks again by itself.
const LEASE: Duration = Duration::from_secs(6);
