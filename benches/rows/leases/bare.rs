//! The comparison: the same keys renewed and deleted by hand, with only the client.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, RedisResult, Script};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::gauge::Cost;

pub(crate) struct Bare {
    connection: MultiplexedConnection,
    keys: Vec<String>,
    values: Vec<String>,
    ttl: Duration,
}

/// How the renewals were batched, to send as many in the same way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) every: Duration,
    /// Renewals in each interval.
    pub(crate) renewals: usize,
    /// How many of them are in one script.
    pub(crate) in_one_script: usize,
}

impl Bare {
    pub(crate) async fn note(url: &str, keys: Vec<String>, ttl: Duration) -> RedisResult<Self> {
        let client = Client::open(url)?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let values = redis::cmd("MGET").arg(&keys).query_async(&mut connection).await?;
        Ok(Self { connection, keys, values, ttl })
    }

    pub(crate) async fn set(&mut self) -> RedisResult<()> {
        for (keys, values) in self.keys.chunks(1_000).zip(self.values.chunks(1_000)) {
            let mut pipe = redis::pipe();
            for (key, value) in keys.iter().zip(values) {
                pipe.cmd("SET").arg(key).arg(value).arg("EX").arg(3600).ignore();
            }
            let () = pipe.query_async(&mut self.connection).await?;
        }
        Ok(())
    }

    /// Renews them with the script that renews leases: one pipeline in each interval.
    pub(crate) async fn renew_by_script(&mut self, pace: Pace, time: Duration) -> Cost {
        let script = Script::new(concat!(
            include_str!("../../../lockattr/src/engines/redis/count.lua"),
            include_str!("../../../lockattr/src/engines/redis/publish.lua"),
            include_str!("../../../lockattr/src/engines/redis/lock.lua"),
            include_str!("../../../lockattr/src/engines/redis/holders.lua"),
            include_str!("../../../lockattr/src/engines/redis/renew.lua"),
        ));
        script.load_async(&mut self.connection).await.expect("the script loads");
        self.keep(pace, time, |bare, from, count| {
            let ttl = bare.ttl.as_millis() as u64;
            let mut pipe = redis::pipe();
            let all: Vec<usize> = (from..from + count).map(|n| n % bare.keys.len()).collect();
            for some in all.chunks(pace.in_one_script) {
                let evalsha = pipe.cmd("EVALSHA").arg(script.get_hash()).arg(some.len());
                for &n in some {
                    evalsha.arg(&bare.keys[n]);
                }
                for &n in some {
                    evalsha.arg(1).arg(&bare.values[n]).arg(ttl);
                }
            }
            pipe
        })
        .await
    }

    /// Renews them with bare `PEXPIRE`s, without a check of the owner: one pipeline in each
    /// interval.
    pub(crate) async fn renew_by_pexpire(&mut self, pace: Pace, time: Duration) -> Cost {
        self.keep(pace, time, |bare, from, count| {
            let ttl = bare.ttl.as_millis() as u64;
            let mut pipe = redis::pipe();
            for n in from..from + count {
                pipe.cmd("PEXPIRE").arg(&bare.keys[n % bare.keys.len()]).arg(ttl);
            }
            pipe
        })
        .await
    }

    async fn keep(
        &mut self,
        pace: Pace,
        time: Duration,
        pipe: impl Fn(&Self, usize, usize) -> redis::Pipeline,
    ) -> Cost {
        Cost::of(async {
            let end = Instant::now() + time;
            let mut times = interval_at(Instant::now() + pace.every, pace.every);
            times.set_missed_tick_behavior(MissedTickBehavior::Burst);
            let mut from = 0;
            while times.tick().await < end {
                let pipe = pipe(self, from, pace.renewals);
                let answers = pipe.query_async::<redis::Value>(&mut self.connection).await;
                assert!(answers.is_ok(), "{answers:?}");
                from += pace.renewals;
            }
        })
        .await
    }

    /// Deletes all keys in one pipeline; returns how long that takes.
    pub(crate) async fn delete(&mut self) -> RedisResult<Duration> {
        let started = Instant::now();
        let mut pipe = redis::pipe();
        for key in &self.keys {
            pipe.cmd("DEL").arg(key).ignore();
        }
        let () = pipe.query_async(&mut self.connection).await?;
        Ok(started.elapsed())
    }
}
