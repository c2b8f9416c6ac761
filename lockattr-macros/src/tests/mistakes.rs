//! The messages about the attribute's arguments.

use super::{FUNCTION, check_complaints, complaints};
use crate::options::{OPTIONS, expected};

#[track_caller]
fn check(args: &str, expected: &[&str]) {
    check_complaints(args, FUNCTION, expected);
}

#[test]
fn every_option_may_be_given_as_its_example() {
    let function = "async fn transfer(id: u64, from: u64, to: u64) -> Result<(), E> {}";
    for option in &OPTIONS {
        let example = option.example();
        let example = example.trim_matches('`');
        let args = match option.name {
            "key" | "keys" => example.to_owned(),
            "term" => format!("key = \"stock\", lead = true, {example}"),
            _ => format!("key = \"stock\", {example}"),
        };
        check_complaints(&args, function, &[]);
        check_complaints(&format!("{args},"), function, &[]);
    }
}

#[test]
fn the_key_is_required() {
    let missing = "missing `key` or `keys`: write what to lock, as in `key = \"product:<id>\"` or \
                   `keys = [\"account:<from>\", \"account:<to>\"]`";
    check("", &[missing]);
    check("ttl = \"10s\"", &[missing]);
    check(
        "\"product:<id>\", retry = 3",
        &["the key has to be named: write `key = \"product:<id>\"`"],
    );
    let expected = expected();
    check("keys = [1, id]", &[]);
    check("names = [id]", &[&format!("unknown option `names`: did you mean `keys`? {expected}")]);
    for name in ["kye", "name"] {
        check(
            &format!("{name} = \"stock\""),
            &[&format!("unknown option `{name}`: did you mean `key`? {expected}")],
        );
    }
    check("key", &["`key` needs a value: write `key = \"product:<id>\"`"]);
}

#[test]
fn a_template_without_its_quotes() {
    let quotes = |option: &str| {
        format!(
            "a template for `{option}` needs its quotes, as in `\"product:<id>\"`; without them this is an \
             expression"
        )
    };
    for key in ["product:<id>", "<id>", "product:42", "product/<id>", "id:", "a-<id>:b"] {
        check(&format!("key = {key}, retry = 3"), &[&quotes("key")]);
        check(&format!("key = \"a\", once_per = \"1h\", once_for = {key}"), &[&quotes("once_for")]);
    }
    check("keys = [product:<id>, id]", &[&quotes("keys")]);
}

#[test]
fn unknown_options() {
    let expected = expected();
    for name in ["fair", "priority", "colour"] {
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
        ("permit", "permits"),
        ("mod", "mode"),
        ("semaphore", "permits"),
        ("shared", "mode"),
        ("lock_at_least_for", "hold_at_least"),
        ("lock_at_most_for", "ttl"),
        ("hold_atleast", "hold_at_least"),
        ("kesy", "keys"),
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
    check(
        "key = \"s\", permits = -1",
        &["`permits` is a number, a `u32`: it cannot be negative, write `permits = 1` or more"],
    );
    check(
        "key = \"s\", permits = 5_000_000_000",
        &[
            "`permits` is a number, a `u32`: write `4294967295` or less, or `mode = shared` for any \
           number of holders",
        ],
    );
    check("key = \"s\", permits = \"3\"", &["write `permits = 3`, without the quotes"]);
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
        "key = \"s\", mode = \"shared\", release = Shared",
        &[
            "write `mode = shared`, without the quotes",
            "`release` cannot be `Shared`; expected one of `await`, `background`",
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
fn several_keys() {
    let list = |remedy: &str| {
        format!("`keys` is a list, as in `keys = [\"account:<from>\", \"account:<to>\"]`: {remedy}")
    };
    check("keys = []", &[&list("name one key at least")]);
    check("keys = \"a:<id>\"", &[&list("write `keys = [\"a:<id>\"]`, or `key = \"a:<id>\"`")]);
    for other in ["names", "vec![id]", "&[id]", "[id, id].concat()", "(id, id)"] {
        check(&format!("keys = {other}"), &[&list("write each key between the brackets")]);
    }
    for fine in ["[\"stock\"]", "[\"stock\", \"stock\",]", "[id, order.key(), \"<names[0]>:<id>\"]"]
    {
        check(&format!("keys = {fine}"), &[]);
    }
    check("keys = [id; 2]", &[&list("write `,` before the next key")]);
    check("keys = [id] retry = 3", &["expected `,` before the next option"]);
    check("key = [\"a\", \"b\"]", &["`key` is one key: write `keys = […]` for several"]);
    check(
        "keys = [id names, , , order, \"<>\" \"b\"], ttl = 1, keys = []",
        &[
            &list("write `,` before the next key"),
            "expected an expression",
            "expected an expression",
            &list("write `,` before the next key"),
            "`ttl` is a duration with its unit: write `\"1s\"` or `\"1ms\"`",
            "`keys` is given twice: leave one of them out",
        ],
    );
    check(
        "keys = [\"a:<>\", id, \"{id}\", \"\"]",
        &[
            "empty placeholder `<>` in the key: write what to put there, as in `<id>`",
            "`{id}` in the key is plain text: write `<id>`",
            "the key is empty: name what to lock, as in `\"product:<id>\"`",
        ],
    );
}

#[test]
fn options_that_exclude_each_other() {
    let keys = "`key` and `keys` both say what to lock: leave one of them out, and name several \
                keys as in `keys = [\"account:<from>\", \"account:<to>\"]`";
    check("key = \"a\", keys = [\"b\"]", &[keys]);
    check("keys = [\"b\"], key = \"a\"", &[keys]);
    let sharing = "`mode` and `permits` cannot stand together: leave `permits` out for a \
                   read/write lock, or `mode` for a semaphore";
    for mode in ["shared", "exclusive"] {
        check(&format!("key = \"s\", permits = 3, mode = {mode}"), &[sharing]);
    }
    // Whatever other mistakes either of them has.
    check(
        "keys = [], key = \"<>\", mode = both, permits = 0",
        &[
            "`keys` is a list, as in `keys = [\"account:<from>\", \"account:<to>\"]`: name one \
             key at least",
            "`mode` cannot be `both`; expected one of `exclusive`, `shared`",
            "empty placeholder `<>` in the key: write what to put there, as in `<id>`",
            keys,
            sharing,
            "`permits` is 0, so the lock could never be held: write `permits = 1` or more",
        ],
    );
}

#[test]
fn a_semaphore_has_a_permit() {
    for none in ["0", "0u32", "0x0", "00", "0_0"] {
        check(
            &format!("key = \"s\", permits = {none}"),
            &["`permits` is 0, so the lock could never be held: write `permits = 1` or \
               more"],
        );
    }
    for fine in ["1", "4294967295", "10u32", "self.slots", "{ 0 }"] {
        check(&format!("key = \"s\", permits = {fine}"), &[]);
    }
}

#[test]
fn a_hold_cannot_outlast_its_lease() {
    check(
        "key = \"s\", ttl = \"10s\", renew = false, hold_at_least = \"11s\"",
        &[
            "`hold_at_least` (11s) is longer than `ttl` (10s), which ends the lease without `renew`: \
           write `ttl = \"11s\"`, or leave `renew` out",
        ],
    );
    check(
        "key = \"s\", hold_at_least = \"2m\", max_hold = \"90s\"",
        &["`hold_at_least` (2m) is longer than `max_hold` (1m 30s): shorten it, or lengthen \
           `max_hold`"],
    );
    for fine in [
        "ttl = \"10s\", renew = false, hold_at_least = \"10s\"",
        "ttl = \"10s\", renew = true, hold_at_least = \"11s\"",
        "ttl = \"10s\", hold_at_least = \"11s\", max_hold = \"11s\"",
        "ttl = \"10s\", renew = id > 3, hold_at_least = \"11s\"",
        "ttl = TTL, renew = false, hold_at_least = \"11s\"",
        "renew = false, hold_at_least = \"11s\"",
        "hold_at_least = \"0s\"",
    ] {
        check(&format!("key = \"s\", {fine}"), &[]);
    }
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
    let said = complaints("key = \"<\", ttl = 10", "const fn deduct(id: u64) {}");
    assert_eq!(said.len(), 3, "{said:#?}");
    let said = complaints("key = \"<ids>:{id}:<>\", ttl = 10", "async fn deduct(id: u64) {}");
    assert_eq!(said.len(), 4, "{said:#?}");
}
