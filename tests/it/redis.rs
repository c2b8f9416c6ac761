//! One real Redis: what stands in it, how it is reached, and what happens when it goes away.

mod away;
mod blocked;
mod cancellation;
mod fencing;
mod herd;
mod line;
mod meddling;
mod outcome;
mod processes;
mod reach;
mod refusals;
mod replicas;
mod runtimes;
mod sentinel;
mod stopped;
mod unknown;
mod value;
mod without_resp3;

/// All that a user needs, as the docs of `RedisStore` tell it.
const RIGHTS: &str = "~lock:* ~lockattr:* resetchannels &lockattr:inbox:* -@all +hello +ping \
                      +select +script|load +evalsha +subscribe +publish +get +set +del +exists \
                      +pttl +pexpire +time +zadd +zcard +zrange +zrem +zremrangebyscore +zrank \
                      +zscore";
