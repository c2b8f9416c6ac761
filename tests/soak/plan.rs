//! The options of the command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::topology;

#[derive(Debug)]
pub(crate) struct Plan {
    /// The approximate time for all rounds together.
    pub(crate) time: Duration,
    /// How long faults go on in one round, if it was said.
    pub(crate) nemesis: Option<Duration>,
    pub(crate) seed: u64,
    pub(crate) on: Vec<&'static str>,
    /// How many topologies run at the same time.
    pub(crate) lanes: usize,
    pub(crate) workers: usize,
    /// The directory for the history of a failed round.
    pub(crate) out: PathBuf,
}

/// The rest of a round beside its faults: starting servers, the quiet phase at the end, and the
/// plots in it.
pub(crate) const AROUND: Duration = Duration::from_secs(24);

/// The longest fault phase of one round: people have to read its history.
const LONGEST: Duration = Duration::from_secs(60);

const SHORTEST: Duration = Duration::from_secs(5);

/// The usage text.
pub(crate) fn usage() -> String {
    format!(
        "soak [--minutes N] [--seed S] [--on NAME,…] [--seconds N] [--lanes N] [--workers N] [--out DIR]\n    \
         --minutes  how long it takes in all: 2 by default\n    \
         --seed     of the faults and the work; a random one by default, which is printed\n    \
         --on       which topologies, of {}\n    \
         --seconds  how long faults go on, once in each topology: to see a round again\n    \
         --lanes    how many topologies at once: 2 by default\n    \
         --workers  processes that work: 3 by default\n    \
         --out      where histories of rounds that failed are left: target/soak by default",
        topology::NAMES.join(", ")
    )
}

impl Plan {
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let mut plan = Self {
            time: Duration::from_secs(120),
            nemesis: None,
            seed: rand::random::<u64>() >> 16,
            on: topology::NAMES.to_vec(),
            lanes: 2,
            workers: 3,
            out: PathBuf::from("target/soak"),
        };
        let mut words = words.iter();
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{name}` needs a value"))?;
            match name.as_str() {
                "--minutes" => plan.time = seconds(name, value)?.mul_f64(60.0),
                "--seconds" => plan.nemesis = Some(seconds(name, value)?),
                "--seed" => plan.seed = number(name, value)?,
                "--on" => plan.on = value.split(',').map(named).collect::<Result<_, _>>()?,
                "--lanes" => plan.lanes = number::<usize>(name, value)?.max(1),
                "--workers" => plan.workers = number::<usize>(name, value)?.max(1),
                "--out" => plan.out = value.into(),
                _ => return Err(format!("unknown option `{name}`")),
            }
        }
        Ok(plan)
    }

    /// How long faults go on in each round.
    pub(crate) fn nemesis(&self) -> Duration {
        let lanes = self.lanes.min(self.on.len());
        let share = self.time.mul_f64(lanes as f64 / self.on.len() as f64);
        self.nemesis.unwrap_or_else(|| share.saturating_sub(AROUND).clamp(SHORTEST, LONGEST))
    }
}

fn named(name: &str) -> Result<&'static str, String> {
    let known = topology::NAMES.iter().find(|known| **known == name);
    known.copied().ok_or_else(|| format!("unknown topology `{name}`"))
}

fn seconds(name: &str, value: &str) -> Result<Duration, String> {
    let seconds = Duration::try_from_secs_f64(number(name, value)?);
    seconds.map_err(|_| format!("`{name} {value}` is no time"))
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("`{name} {value}` is not a valid number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Plan, String> {
        Plan::parse(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_written_plan_is_parsed_as_given() {
        let plan = parsed("--minutes 25 --seed 7 --on redis,etcd --lanes 1 --workers 4").unwrap();
        assert_eq!((plan.time.as_secs(), plan.seed), (1500, 7));
        assert_eq!((plan.on, plan.lanes, plan.workers), (vec!["redis", "etcd"], 1, 4));
    }

    #[test]
    fn an_invalid_plan_is_refused() {
        for wrong in ["--minutes", "--minutes x", "--minutes -1", "--on mongo", "--fast 1"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_time_is_divided_among_the_rounds() {
        let nemesis = |words: &str| parsed(words).unwrap().nemesis().as_secs();
        assert_eq!(nemesis("--minutes 1 --on redis"), 36);
        assert_eq!(nemesis("--minutes 2 --on redis,etcd,mysql,postgres"), 36);
        assert_eq!(nemesis("--minutes 60"), 60);
        assert_eq!(nemesis("--minutes 0.1"), 5);
        assert_eq!(nemesis("--minutes 60 --seconds 9"), 9);
    }
}
