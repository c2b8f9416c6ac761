//! `node lead url=… key=… resource=… process=N [progress_within=MILLISECONDS] [every=MILLISECONDS] [threads=N]`:
//! says `ready` when it has a manager, and campaigns from the order `campaign` on. A leader says `leads TERM`, then writes to the resource and
//! reports progress again and again. When its body is dropped, it says `ended TERM`; when the campaign ends,
//! `over` and why.
//!
//! | order | what happens |
//! |---|---|
//! | `resign` | the leader resigns |
//! | `hang` | the body awaits without end |
//! | `block MILLISECONDS` | the body blocks its thread |
//! | `block` | the same until the order `unblock` |
//! | `quiet` | the leader writes, and reports no progress |
//! | `progress` | the leader reports progress, once |
//! | `stop` | the process stops itself (SIGSTOP) between two writes; when it is continued, the next write is due |
//! | `return` | the body returns |
//! | `leader` | says `leader PROCESS TERM`, with `-` for what the store does not show, or `no leader` |
//! | `shutdown` | the manager shuts down |
//!
//! With `threads=0` all of it runs on the one thread of the process.

use std::error::Error;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lockattr::{LockManager, LockOptions, Term};
use lockattr_history::TermStep;
use lockattr_tests::TermFile;
use nix::sys::signal::{Signal, raise};
use tokio::runtime::Builder;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use crate::arguments::Arguments;

type Orders = Arc<Mutex<UnboundedReceiver<String>>>;

/// What the bodies of all terms share.
#[derive(Clone)]
struct Leads {
    resource: TermFile,
    process: u32,
    every: Duration,
    orders: Orders,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let runtime = match arguments.get_or("threads", 2)? {
        0 => Builder::new_current_thread().enable_all().build()?,
        threads => Builder::new_multi_thread().worker_threads(threads).enable_all().build()?,
    };
    let done = runtime.block_on(campaign(arguments));
    // A body may have blocked a thread.
    runtime.shutdown_background();
    done
}

async fn campaign(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let url: String = arguments.get_or("url", String::new())?;
    let key: String = arguments.get_or("key", String::new())?;
    let (give, orders) = unbounded_channel();
    let leads = Leads {
        resource: TermFile::at(arguments.get_or("resource", String::new())?),
        process: arguments.get_or("process", 0)?,
        every: Duration::from_millis(arguments.get_or("every", 20)?),
        orders: Arc::new(Mutex::new(orders)),
    };
    let mut options = LockOptions::new();
    let within = arguments.get_or("progress_within", 0)?;
    if within > 0 {
        options = options.progress_within(Duration::from_millis(within));
    }
    let manager = LockManager::builder().url(url).build()?;
    let mut lines = lines();
    say("ready");
    if lines.recv().await.as_deref() != Some("campaign") {
        return Err("the first order is `campaign`".into());
    }
    let led = tokio::spawn({
        let (manager, key) = (manager.clone(), key.clone());
        async move {
            let led = manager.lead(key, options, |term| leads.clone().lead(term)).await;
            say(&match led {
                Ok(()) => "over returned".to_owned(),
                Err(error) => format!("over {error}"),
            });
        }
    });
    take_orders(&manager, &key, lines, give).await;
    manager.shutdown().await;
    led.await?;
    Ok(())
}

/// Reads on a thread, because a body may block those of the runtime.
fn lines() -> UnboundedReceiver<String> {
    let (read, lines) = unbounded_channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            match line.as_str() {
                "unblock" => UNBLOCKED.store(true, Ordering::Relaxed),
                _ => drop(read.send(line)),
            }
        }
    });
    lines
}

async fn take_orders(
    manager: &LockManager,
    key: &str,
    mut lines: UnboundedReceiver<String>,
    give: UnboundedSender<String>,
) {
    while let Some(order) = lines.recv().await {
        match order.as_str() {
            "leader" => say(&match manager.leader(key).await {
                Ok(Some(leader)) => {
                    let process = leader.holder.process.map_or("-".into(), |it| it.to_string());
                    let term = leader.term.map_or("-".into(), |it| it.to_string());
                    format!("leader {process} {term}")
                }
                Ok(None) => "no leader".to_owned(),
                Err(error) => format!("refused {error}"),
            }),
            "shutdown" => manager.shutdown().await,
            _ => drop(give.send(order)),
        }
    }
}

impl Leads {
    async fn lead(self, term: Term) {
        let mut quiet = false;
        let mut orders = self.orders.lock().await;
        let _body = Body::begin(&self, term.number().get());
        loop {
            let order = tokio::select! {
                order = orders.recv() => order,
                () = sleep(self.every) => None,
            };
            match order.as_deref().map(|order| order.split_once(' ').unwrap_or((order, ""))) {
                Some(("resign", _)) => term.resign(),
                Some(("hang", _)) => std::future::pending().await,
                Some(("block", time)) => block(time),
                Some(("quiet", _)) => quiet = true,
                Some(("progress", _)) => term.progress(),
                Some(("stop", _)) => raise(Signal::SIGSTOP).expect("a signal to this process"),
                Some(("return", _)) => return,
                Some((order, _)) => say(&format!("no order `{order}`")),
                None => {}
            }
            self.resource.write(self.process, &term);
            if !quiet {
                term.progress();
            }
        }
    }
}

/// Notes the beginning of a body, and its end when it is dropped.
struct Body<'a> {
    leads: &'a Leads,
    term: u64,
}

impl<'a> Body<'a> {
    fn begin(leads: &'a Leads, term: u64) -> Self {
        leads.resource.note(leads.process, term, TermStep::Began);
        say(&format!("leads {term}"));
        Self { leads, term }
    }
}

impl Drop for Body<'_> {
    fn drop(&mut self) {
        self.leads.resource.note(self.leads.process, self.term, TermStep::Ended);
        say(&format!("ended {}", self.term));
    }
}

/// Whether the order `unblock` came.
static UNBLOCKED: AtomicBool = AtomicBool::new(false);

#[expect(clippy::disallowed_methods, reason = "the fault is a body that blocks its thread")]
fn block(milliseconds: &str) {
    match milliseconds {
        "" => {
            while !UNBLOCKED.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(10));
            }
        }
        time => thread::sleep(Duration::from_millis(time.parse().expect("milliseconds"))),
    }
}

fn say(line: &str) {
    // The test may have closed its end, and kills this process next.
    writeln!(std::io::stdout(), "{line}").ok();
}
