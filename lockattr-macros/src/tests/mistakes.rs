//! What is said about the attribute's arguments.

use super::{FUNCTION, check_complaints, complaints};
use crate::options::{OPTIONS, expected};

#[track_caller]
fn check(args: &str, expected: &[&str]) {
    check_complaints(args, FUNCTION, expected);
}

#[test]
fn every_option_may_be_given_as_its_example() {
    for option in &OPTIONS {
        let example = option.example();
        let example = example.trim_matches('`');
        let args = match option.name {
            "key" => example.to_owned(),
            _ => format!("key = \"stock\", {example}"),
        };
        check(&args, &[]);
        check(&format!("{args},"), &[]);
    }
}

#[test]
fn the_key_is_required() {
    let missing = "missing `key`: write what to lock, as in `key = \"product:<id>\"`";
    check("", &[missing]);
    check("ttl = \"10s\"", &[missing]);
    check(
        "\"product:<id>\", retry = 3",
        &["the key has to be named: write `key = \"product:<id>\"`"],
    );
    let expected = expected();
    check("keys = [1, 2]", &[&format!("unknown option `keys`; {expected}")]);
    for name in ["kye", "name"] {
        check(
            &format!("{name} = \"stock\""),
            &[&format!("unknown option `{name}`: did you mean `key`? {expected}")],
        );
    }
    check("key", &["`key` needs a value: write `key = \"product:<id>\"`"]);
}

#[test]
fn unknown_options() {
    let expected = expected();
    for name in ["keys", "mode", "permits", "hold_at_least", "colour"] {
        check(
            &format!("key = \"stock\", {name} = 3"),
            &[&format!("unknown option `{name}`; {expected}")],
        );
    }
    for (name, meant) in [
        ("kye", "key"),
        ("name", "key"),
        ("retyr", "retry"),
        ("tll", "ttl"),
        ("on_bussy", "on_busy"),
        ("expire", "ttl"),
        ("lease_time", "ttl"),
        ("timeout", "wait"),
        ("delay", "retry_delay"),
        ("retries", "retry"),
        ("watchdog", "renew"),
    ] {
        check(
            &format!("key = \"stock\", {name}"),
            &[&format!("unknown option `{name}`: did you mean `{meant}`? {expected}")],
        );
    }
}

#[test]
fn values_are_missing_or_given_twice() {
    check(
        "key = \"stock\", ttl, retry =, wait: \"3s\", renew(true)",
        &[
            "`ttl` needs a value: write `ttl = \"10s\"`",
            "`retry` needs a value: write `retry = 10`",
            "`wait` needs a value: write `wait = \"3s\"`",
            "`renew` needs a value: write `renew = false`",
        ],
    );
    check(
        "key = \"stock\", retry = 1, retry = 2, retry = \"x\"",
        &[
            "`retry` is given twice: leave one of them out",
            "`retry` is given twice: leave one of them out",
        ],
    );
}

#[test]
fn reading_goes_on_after_a_mistake() {
    check(
        "key = \"stock\" ttl = 10 = 3 retry = -1, = 4, when = \"always\", manager = \"\", ,",
        &[
            "expected `,` before the next option",
            "expected `,` before the next option",
            "`retry` is a number, a `u32`: it cannot be negative, write `retry = 0` or more",
            &format!("expected an option: {}", expected()),
            "`when` is a `bool`: write `when = true`, `when = false`, or an expression of that \
             type, without the quotes",
            "`manager` has an empty name: write the one the manager was installed under, as in \
             `manager = \"orders\"`, or leave `manager` out for the default manager",
            &format!("expected an option: {}", expected()),
        ],
    );
}

#[test]
fn numbers_and_flags() {
    let number = "`retry` is a number, a `u32`: ";
    check("key = \"s\", retry = \"10\"", &["write `retry = 10`, without the quotes"]);
    check("key = \"s\", retry = \"ten\"", &[&format!("{number}write it as in `retry = 10`")]);
    check("key = \"s\", retry = 1.0", &[&format!("{number}write it as in `retry = 10`")]);
    check("key = \"s\", retry = 10u64", &[&format!("{number}write `10`")]);
    check(
        "key = \"s\", retry = 4_294_967_296",
        &[&format!(
            "{number}write `4294967295` or less, or leave `retry` out and say how long to try, as \
             in `wait = \"1h\"`"
        )],
    );
    for fine in ["0", "10u32", "0xff", "4294967295", "self.retries", "-offset", "{ 3 }"] {
        check(&format!("key = \"s\", retry = {fine}"), &[]);
    }
    for flag in ["renew", "reentrant", "when"] {
        let sentence = format!(
            "`{flag}` is a `bool`: write `{flag} = true`, `{flag} = false`, or an expression of \
             that type"
        );
        for value in ["1", "-1", "'t'"] {
            check(&format!("key = \"s\", {flag} = {value}"), &[&sentence]);
        }
        check(
            &format!("key = \"s\", {flag} = \"yes\""),
            &[&format!("{sentence}, without the quotes")],
        );
        check(
            &format!("key = \"s\", {flag} = \"true\""),
            &[&format!("write `{flag} = true`, without the quotes")],
        );
        check(&format!("key = \"s\", {flag} = id > 3 && !order.done"), &[]);
    }
}

#[test]
fn choices() {
    check(
        "key = \"s\", on_busy = \"skip\", on_lost = OnLost::Cancel, on_unavailable = 3, release = later",
        &[
            "write `on_busy = skip`, without the quotes",
            "`on_lost` cannot be `OnLost`; expected one of `cancel`, `error`, `ignore`",
            "`on_unavailable` cannot be `3`; expected one of `error`, `run_unlocked`",
            "`release` cannot be `later`; expected one of `await`, `background`",
        ],
    );
    check(
        "key = \"s\", on_busy = wait",
        &["`on_busy` cannot be `wait`; expected one of `error`, `skip`, `return(…)`"],
    );
}

#[test]
fn on_busy_return_takes_one_value() {
    let takes = "`on_busy = return(…)` takes the value to return: ";
    let in_parentheses = format!("{takes}write it in parentheses, as in `return(Ok(0))`");
    check("key = \"s\", on_busy = return", &[&in_parentheses]);
    check("key = \"s\", on_busy = return None, retry = 3", &[&in_parentheses]);
    check("key = \"s\", on_busy = return()", &[&format!("{takes}write `return(())` for none")]);
    check(
        "key = \"s\", on_busy = return(a, b)",
        &[&format!("{takes}only one, as in `return(Ok(0))`")],
    );
    check("key = \"s\", on_busy = return((a, b))", &[]);
}

#[test]
fn names_and_paths() {
    let name = "`lease` is a name for the body to use: write `lease = lease`";
    for lease in ["\"lease\"", "_", "self", "&lease", "3"] {
        check(&format!("key = \"s\", lease = {lease}"), &[name]);
    }
    check(
        "key = \"s\", lease = names",
        &["`lease = names` would hide the parameter `names` in the body: write another name"],
    );
    check("key = \"s\", crate = \"::a::b\"", &["write `crate = ::a::b`, without the quotes"]);
    check("key = \"s\", crate = 3", &["`crate` is a path: write `crate = ::my_crate::lockattr`"]);
    for path in ["a", "::a::b", "crate::a", "self::a", "super::a"] {
        check(&format!("key = \"s\", crate = {path}"), &[]);
    }
    check(
        "key = \"s\", manager = 3",
        &["`manager` is a `&LockManager` or the name one was installed under: write `manager = \
           &self.locks` or `manager = \"orders\"`"],
    );
}

#[test]
fn impossible_times() {
    check(
        "key = \"s\", ttl = \"9ms\"",
        &["`ttl` is 9ms, too short to renew: write `\"10ms\"` or more"],
    );
    check("key = \"s\", ttl = \"10ms\"", &[]);
    check("key = \"s\", ttl = \"30days\"", &[]);
    check(
        "key = \"s\", ttl = \"30days 1ns\"",
        &["`ttl` is longer than 30 days, and nobody waits that long for a crashed holder: write \
           `\"30days\"` or less; the lease is renewed while the body runs"],
    );
    check(
        "key = \"s\", max_hold = \"3s\", ttl = \"4s\"",
        &["`max_hold` (3s) is shorter than `ttl` (4s): shorten `ttl` too"],
    );
    check("key = \"s\", max_hold = \"4s\", ttl = \"4s\"", &[]);
    check(
        "key = \"s\", wait = \"0s\", retry = 3, retry_delay = \"0s\"",
        &[
            "`wait` is zero, so `retry` would never retry: leave one of them out",
            "`retry_delay` is zero, which would ask the store without a pause: write `\"1ms\"` or \
             more",
        ],
    );
    check("key = \"s\", wait = \"0s\"", &[]);
}

#[test]
fn a_lease_needs_a_lock() {
    let beside = |option: &str| {
        format!(
            "`lease` cannot stand beside `{option}`, where the body may run without a lock: leave \
             `lease` out and ask `lockattr::current()` in the body"
        )
    };
    check(
        "key = \"s\", lease = lease, when = true, on_unavailable = run_unlocked",
        &[&beside("when"), &beside("on_unavailable = run_unlocked")],
    );
    check("key = \"s\", lease = lease, on_unavailable = error", &[]);
}

#[test]
fn mistakes_of_attribute_and_function_come_together() {
    let said = complaints("key = \"<\", ttl = 10", "fn deduct(id: u64) {}");
    assert_eq!(said.len(), 3, "{said:#?}");
    let said = complaints("key = \"<ids>:{id}:<>\", ttl = 10", "async fn deduct(id: u64) {}");
    assert_eq!(said.len(), 4, "{said:#?}");
}
