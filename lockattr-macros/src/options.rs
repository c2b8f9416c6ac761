//! The table of options: the name, an example and the parser of each.

use syn::parse::ParseStream;

use crate::args::Args;
use crate::duration::Time;
use crate::key::Key;
use crate::suggest::nearest;
use crate::value;

pub(crate) struct Spec {
    pub(crate) name: &'static str,
    /// An example value, for the error if one is missing.
    example: &'static str,
    /// The names in other lock libraries.
    elsewhere: &'static [&'static str],
    /// Reads the value after `=`.
    pub(crate) read: fn(&mut Args, &str, ParseStream<'_>) -> syn::Result<()>,
}

pub(crate) const OPTIONS: [Spec; 26] = [
    Spec {
        name: "key",
        example: "\"product:<id>\"",
        elsewhere: &["name", "id", "lock", "resource", "template"],
        read: |args, option, input| put(&mut args.key, Key::read(option, input)),
    },
    Spec {
        name: "keys",
        example: "[\"account:<from>\", \"account:<to>\"]",
        elsewhere: &["names", "ids", "locks", "resources", "templates", "multi"],
        read: |args, option, input| put(&mut args.keys, Key::read_all(option, input)),
    },
    Spec {
        name: "ttl",
        example: "\"10s\"",
        elsewhere: &["expire", "expires", "expiry", "lease_time", "duration", "lock_at_most_for"],
        read: |args, option, input| put(&mut args.ttl, time(option, input)),
    },
    Spec {
        name: "retry",
        example: "10",
        elsewhere: &["retries", "max_retries", "retry_count", "attempts", "tries"],
        read: |args, option, input| put(&mut args.retry, value::retries(option, input)),
    },
    Spec {
        name: "retry_delay",
        example: "\"100ms\"",
        elsewhere: &["delay", "interval", "retry_interval", "backoff", "sleep"],
        read: |args, option, input| put(&mut args.retry_delay, time(option, input)),
    },
    Spec {
        name: "wait",
        example: "\"3s\"",
        elsewhere: &["timeout", "wait_time", "max_wait", "wait_timeout", "acquire_timeout"],
        read: |args, option, input| put(&mut args.wait, time(option, input)),
    },
    Spec {
        name: "renew",
        example: "false",
        elsewhere: &["watchdog", "auto_renew", "auto_extend", "keep_alive", "heartbeat", "extend"],
        read: |args, option, input| put(&mut args.renew, value::flag(option, input)),
    },
    Spec {
        name: "max_hold",
        example: "\"5m\"",
        elsewhere: &["max_time", "max_duration", "hold", "max_lease"],
        read: |args, option, input| put(&mut args.max_hold, time(option, input)),
    },
    Spec {
        name: "hold_at_least",
        example: "\"1m\"",
        elsewhere: &["lock_at_least_for", "at_least", "at_least_for", "min_hold", "min_time"],
        read: |args, option, input| put(&mut args.hold_at_least, time(option, input)),
    },
    Spec {
        name: "once_per",
        example: "\"22h\"",
        elsewhere: &["every", "period", "once", "once_every", "at_most_once_per"],
        read: |args, option, input| put(&mut args.once_per, time(option, input)),
    },
    Spec {
        name: "once_for",
        example: "\"<id>\"",
        elsewhere: &["once_key", "idempotency_key"],
        read: |args, option, input| put(&mut args.once_for, Key::read(option, input)),
    },
    Spec {
        name: "share_result",
        example: "true",
        elsewhere: &["single_flight", "singleflight", "share", "coalesce", "cache"],
        read: |args, option, input| put(&mut args.share_result, value::literal_flag(option, input)),
    },
    Spec {
        name: "lead",
        example: "true",
        elsewhere: &["leader", "election", "leader_election", "singleton"],
        read: |args, option, input| put(&mut args.lead, value::literal_flag(option, input)),
    },
    Spec {
        name: "progress_within",
        example: "\"30s\"",
        elsewhere: &["liveness", "progress", "health_check", "idle_timeout"],
        read: |args, option, input| put(&mut args.progress_within, time(option, input)),
    },
    Spec {
        name: "on_busy",
        example: "skip",
        elsewhere: &["on_contended", "on_fail", "on_failure", "fallback", "skip", "on_locked"],
        read: |args, option, input| put(&mut args.on_busy, value::on_busy(option, input)),
    },
    Spec {
        name: "on_lost",
        example: "error",
        elsewhere: &["on_expired", "on_lease_lost"],
        read: |args, option, input| {
            let on_lost = value::choice(option, &["cancel", "error", "ignore"], input);
            put(&mut args.on_lost, on_lost)
        },
    },
    Spec {
        name: "on_unavailable",
        example: "run_unlocked",
        elsewhere: &["on_error", "on_store_error", "fail_open"],
        read: |args, option, input| {
            let on_unavailable = value::choice(option, &["error", "run_unlocked"], input);
            put(&mut args.on_unavailable, on_unavailable)
        },
    },
    Spec {
        name: "reentrant",
        example: "false",
        elsewhere: &["reentry", "recursive", "nested"],
        read: |args, option, input| put(&mut args.reentrant, value::flag(option, input)),
    },
    Spec {
        name: "mode",
        example: "shared",
        elsewhere: &["kind", "type", "lock_type", "shared", "exclusive", "read", "write"],
        read: |args, option, input| {
            put(&mut args.mode, value::choice(option, &["exclusive", "shared"], input))
        },
    },
    Spec {
        name: "permits",
        example: "3",
        elsewhere: &["semaphore", "slots", "limit", "max_holders", "concurrency", "capacity"],
        read: |args, option, input| put(&mut args.permits, value::permits(option, input)),
    },
    Spec {
        name: "release",
        example: "background",
        elsewhere: &["unlock", "auto_release"],
        read: |args, option, input| {
            put(&mut args.release, value::choice(option, &["await", "background"], input))
        },
    },
    Spec {
        name: "when",
        example: "quantity > 0",
        elsewhere: &["condition", "if", "unless", "only_if"],
        read: |args, option, input| put(&mut args.when, value::flag(option, input)),
    },
    Spec {
        name: "manager",
        example: "\"orders\"",
        elsewhere: &["store", "client", "redis", "pool", "backend", "provider"],
        read: |args, option, input| put(&mut args.manager, value::manager(option, input)),
    },
    Spec {
        name: "lease",
        example: "lease",
        elsewhere: &["guard", "handle"],
        read: |args, option, input| put(&mut args.lease, value::name(option, input)),
    },
    Spec {
        name: "term",
        example: "term",
        elsewhere: &["mandate", "epoch"],
        read: |args, option, input| put(&mut args.term, value::name(option, input)),
    },
    Spec {
        name: "crate",
        example: "::my_crate::lockattr",
        elsewhere: &["krate", "crate_path", "path"],
        read: |args, option, input| put(&mut args.krate, value::path(option, input)),
    },
];

impl Spec {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        OPTIONS.iter().find(|option| option.name == name)
    }

    /// The option as a user would write it.
    pub(crate) fn example(&self) -> String {
        format!("`{} = {}`", self.name, self.example)
    }
}

/// The option that was probably meant by an unknown name.
pub(crate) fn meant(name: &str) -> Option<&'static str> {
    let elsewhere = OPTIONS.iter().find(|option| option.elsewhere.contains(&name));
    elsewhere
        .map(|option| option.name)
        .or_else(|| nearest(name, OPTIONS.iter().map(|option| option.name)))
}

pub(crate) fn unknown(name: &str) -> String {
    match meant(name) {
        Some(meant) => format!("unknown option `{name}`: did you mean `{meant}`? {}", expected()),
        None => format!("unknown option `{name}`; {}", expected()),
    }
}

/// "expected one of" and every option.
pub(crate) fn expected() -> String {
    let names: Vec<_> = OPTIONS.iter().map(|option| option.name).collect();
    format!("expected one of `{}`", names.join("`, `"))
}

fn put<T>(slot: &mut Option<T>, value: syn::Result<T>) -> syn::Result<()> {
    *slot = Some(value?);
    Ok(())
}

fn time(option: &str, input: ParseStream<'_>) -> syn::Result<Time> {
    Time::from_expr(option, value::expr(input)?)
}
