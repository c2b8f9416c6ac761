//! The worker processes, and the faults that hit each of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lockattr_tests::{Node, Wires};
use tokio::time::{Instant, sleep, sleep_until};

use rand::Rng;

use crate::chance::{one_of, stream};
use crate::nemesis::{Trouble, attacks};
use crate::topology::Topology;
use crate::worker::CLOCK;

/// One worker process; when it is killed, the next one takes its place.
pub(crate) struct Member {
    nth: usize,
    seed: u64,
    lives: u32,
    url: String,
    directory: PathBuf,
    all_modes: bool,
    troubles: &'static [Trouble],
    wires: Wires,
    node: Node,
}

/// The number of faults of each kind.
pub(crate) type Faults = BTreeMap<String, u64>;

impl Member {
    pub(crate) async fn start<T: Topology>(
        engine: &T,
        nth: usize,
        seed: u64,
        directory: PathBuf,
    ) -> Self {
        let wires = Wires::before(engine).await;
        let settings = format!(
            "{}&{}{}&{}",
            ttl(T::SHORT, seed, nth),
            T::QUICK,
            T::SETTINGS,
            habits(seed, nth)
        );
        let url = wires.url_with(&settings);
        let node = node(&url, nth, 0, seed, &directory, T::ALL_MODES).await;
        let (all_modes, troubles) = (T::ALL_MODES, T::TROUBLES);
        Self { nth, seed, lives: 0, url, directory, all_modes, troubles, wires, node }
    }

    /// One fault after the other, until the time is over; all is well then.
    pub(crate) async fn run_nemesis(&mut self, until: Instant) -> Faults {
        let mut faults = Faults::new();
        for attack in attacks(self.seed, &format!("worker {}", self.nth), self.troubles) {
            if Instant::now() + attack.after >= until {
                break;
            }
            sleep(attack.after).await;
            *faults.entry(format!("{:?}", attack.kind)).or_default() += 1;
            self.suffer(attack.kind, attack.lasts, attack.pick).await;
        }
        sleep_until(until).await;
        faults
    }

    async fn suffer(&mut self, trouble: Trouble, lasts: Duration, pick: usize) {
        let wires = &self.wires;
        let one = wires.each().get(pick % wires.each().len().max(1));
        match trouble {
            Trouble::Killed => {
                self.node.kill();
                self.lives += 1;
                let (nth, lives, seed) = (self.nth, self.lives, self.seed);
                self.node =
                    node(&self.url, nth, lives, seed, &self.directory, self.all_modes).await;
                return;
            }
            Trouble::Stopped => {
                self.node.stop_signal();
                sleep(lasts).await;
                self.node.continue_signal();
                return;
            }
            Trouble::CalendarJumped => {
                let hours = i64::try_from(pick % 13).expect("few") - 6;
                return self.node.say(&format!("{CLOCK}{}", hours * 3_600_000)).await;
            }
            Trouble::NetworkCut => wires.cut().await,
            Trouble::NetworkSilent => wires.hold(),
            Trouble::RepliesHeld => wires.hold_replies(),
            Trouble::RepliesSwallowed => wires.swallow_replies(),
            Trouble::AllSwallowed => wires.swallow(),
            Trouble::NetworkSlow => wires.delay(Duration::from_millis(1 + pick as u64 % 60)),
            Trouble::OneWayCut => one.expect("a wire").cut().await,
            Trouble::OneWaySilent => one.expect("a wire").hold(),
        }
        sleep(lasts).await;
        wires.pass().await;
    }

    /// Tells the worker to finish its turns and to acquire every lock once more.
    ///
    /// # Errors
    ///
    /// What it did instead.
    pub(crate) async fn settle(&mut self) -> Result<(), String> {
        self.node.say("enough").await;
        // It answers after it has acquired all locks, which may take longer than the usual limit
        // for a node.
        match self.node.line_within(SETTLES_WITHIN).await.as_deref() {
            Some("settled") => Ok(()),
            answer => {
                Err(format!("process {} printed {answer:?}, and not `settled`", self.number()))
            }
        }
    }

    /// Shuts the worker down.
    ///
    /// # Errors
    ///
    /// How it ended instead.
    pub(crate) async fn finish(&mut self) -> Result<(), String> {
        let status = self.node.finish().await;
        let number = self.number();
        status
            .success()
            .then_some(())
            .ok_or_else(|| format!("process {number} ended with {status}"))
    }

    fn number(&self) -> u32 {
        number(self.nth, self.lives)
    }
}

/// The longest turn, then all locks one after the other.
const SETTLES_WITHIN: Duration = Duration::from_secs(170);

/// A number that no other process of the round has, before or after a restart.
fn number(nth: usize, lives: u32) -> u32 {
    lives * 100 + u32::try_from(nth).expect("few processes")
}

/// Short leases, some shorter than the one for which the engine promises its limit.
fn ttl(short: &str, seed: u64, nth: usize) -> String {
    let mut random = stream(seed, &format!("ttl {nth}"));
    short.replace("ttl=2s", one_of(&mut random, &["ttl=2s", "ttl=1s", "ttl=600ms"]))
}

/// How a process is set: what it keeps after its last holder, and how often it hands off.
fn habits(seed: u64, nth: usize) -> String {
    let mut random = stream(seed, &format!("habits {nth}"));
    let linger = one_of(&mut random, &["0s", "0s", "5ms", "100ms", "1s"]);
    let max_handoffs = one_of(&mut random, &["0", "1", "32", "1000"]);
    let time = one_of(&mut random, &["1ms", "20ms", "200ms"]);
    format!("wait=3s&linger={linger}&max_handoffs={max_handoffs}&max_handoff_time={time}")
}

async fn node(
    url: &str,
    nth: usize,
    lives: u32,
    seed: u64,
    directory: &std::path::Path,
    all_modes: bool,
) -> Node {
    let program = std::env::current_exe().expect("this program has a path");
    let seed = stream(seed, &format!("worker {nth} life {lives}")).next_u64();
    let words = [
        ("url", url.to_owned()),
        ("process", number(nth, lives).to_string()),
        ("seed", seed.to_string()),
        ("directory", directory.display().to_string()),
        ("modes", all_modes.to_string()),
    ];
    let mut node = Node::start(&program.to_string_lossy(), "worker", &words);
    assert_eq!(node.line().await, "ready");
    node
}
