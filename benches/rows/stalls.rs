//! Stalls: one session of a database server stops for a second, again and again, while eight
//! processes work on keys of their own.

mod crew;
mod mysql;
mod postgres;

use std::ops::Range;
use std::time::Duration;

use lockattr_tests::{Engine, MariaDb, PostgresServer, bare};
use rand::seq::SliceRandom;

use crate::report::{Bar, Report};
use crate::spread::Spread;
use crew::Crew;
use mysql::MysqlSessions;
use postgres::PostgresSessions;

/// How long a session stops, in milliseconds. As long as a request waits for its response by
/// default, so that the server grants requests while their clients give them up.
const STOPPED: Range<u64> = 1_000..1_006;

/// When every manager should have half of its rate again, in seconds.
const BACK: f64 = 1.0;

/// The number of stalls for each second that a way is measured: 10 by default.
const STALLS: f64 = 5.0;

/// What a session does for its manager. By its last statement: all requests of a manager use the
/// same few connections, and a connection that listens is idle, or sleeps on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Requests,
    Listens,
}

/// The sessions of the managers on one server.
trait Sessions {
    /// Returns the sessions of this kind.
    async fn of(&self, kind: Kind) -> Vec<i32>;

    /// Stops one of these sessions for this time. Then it handles what arrived meanwhile.
    async fn stop(&self, sessions: &[i32], time: Duration);
}

/// Measures both databases, or those whose names contain `only`.
pub(super) async fn measure(report: &mut Report, time: Duration, only: Option<&str>) {
    report.row("stalls", "one session stops for a second, eight managers on keys of their own");
    let asked = |name: &str| only.is_none_or(|only| name.contains(only));
    let stalls = (time.as_secs_f64() * STALLS) as usize;
    if asked("postgres") {
        report.server("postgres");
        let server = PostgresServer::start().await;
        let crew =
            Crew::start(&bare(&server.url()), &bare(&server.url_with("application_name=keeper")))
                .await;
        stall(report, &crew, &PostgresSessions::of(&server).await, stalls).await;
    }
    if asked("mysql") {
        report.server("mysql");
        let server = MariaDb::with(mysql::OPTIONS).await;
        server.execute("mysql", "CREATE DATABASE bench").await;
        let url = bare(&server.url_of("bench"));
        let crew = Crew::start(&url, &url).await;
        stall(report, &crew, &MysqlSessions::of(&server).await, stalls).await;
    }
}

async fn stall(report: &mut Report, crew: &Crew, sessions: &impl Sessions, stalls: usize) {
    let first = crew.rates(Duration::from_secs(2)).await;
    let least = first.iter().copied().fold(f64::INFINITY, f64::min);
    report.note(&format!("each manager before the first stall: {least:.0} a second or more"));
    let (mut back, mut slowed) = (Vec::new(), Vec::new());
    let (mut late, mut listeners) = (0, 0);
    for nth in 0..stalls {
        let usual = usual(crew, &first).await;
        let wanted = if nth % 2 == 0 { Kind::Requests } else { Kind::Listens };
        let Some((kind, chosen)) = shuffled(sessions, wanted).await else { continue };
        listeners += usize::from(kind == Kind::Listens);
        let time = Duration::from_millis(rand::random_range(STOPPED));
        let ((), rates) = tokio::join!(sessions.stop(&chosen, time), crew.rates(time));
        let below = rates.iter().zip(&usual).filter(|&(rate, usual)| *rate < usual / 2.0).count();
        let times = crew.recover(&usual).await;
        let gone = times.iter().filter(|time| time.is_none()).count();
        let slowest = times.iter().map(|time| time.unwrap_or(crew::LIMIT)).max();
        let slowest = slowest.unwrap_or_default().as_secs_f64();
        if slowest > BACK {
            report.note(&format!(
                "stall {:>3}, {kind:?}: {below} managers below half meanwhile, back within \
                 {slowest:.1} s except {gone}",
                nth + 1
            ));
        }
        back.push(slowest);
        if kind == Kind::Requests {
            slowed.push(below as f64);
        }
        late += gone;
    }
    let rates = crew.rates(Duration::from_secs(2)).await;
    let stuck = rates.iter().filter(|&&rate| rate < 1.0).count();
    report.note(&format!("{listeners} of {stalls} stalls met a listener"));
    report.note(&format!("failed calls: {}", crew.failures()));
    let (Some(back), Some(slowed)) = (Spread::of(back), Spread::of(slowed)) else { return };
    report.figure("managers below half while one's requests stall", slowed, "");
    report.figure("back at half of the rate, slowest manager, median", back, "s");
    report.bar("the same, slowest stall", back.max, "s", Bar::AtMost(BACK));
    report.bar("managers not back within 5 s, all stalls", late as f64, "", Bar::AtMost(0.0));
    report.bar("managers without an acquisition at the end", stuck as f64, "", Bar::AtMost(0.0));
}

/// Returns the rates of the last second before a stall, because the machine may have become slower.
/// A manager that has been stuck since an earlier stall still counts as slow.
async fn usual(crew: &Crew, first: &[f64]) -> Vec<f64> {
    let now = crew.rates(Duration::from_secs(1)).await;
    now.iter().zip(first).map(|(now, first)| now.max(first / 10.0)).collect()
}

/// Returns the sessions of this kind in random order, or those of the other one if there are none.
async fn shuffled(sessions: &impl Sessions, wanted: Kind) -> Option<(Kind, Vec<i32>)> {
    let other = if wanted == Kind::Requests { Kind::Listens } else { Kind::Requests };
    for kind in [wanted, other] {
        let mut all = sessions.of(kind).await;
        if !all.is_empty() {
            all.shuffle(&mut rand::rng());
            return Some((kind, all));
        }
    }
    None
}
