//! Fuzzes URLs of any scheme: no panic, no connection, and no error shows a part of a password,
//! however the rest of the URL is mistyped.

#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use lockattr::LockManager;

const SCHEMES: [&str; 13] = [
    "memory",
    "redis",
    "rediss",
    "redis+unix",
    "redis+sentinel",
    "redis+cluster",
    "redlock",
    "postgres",
    "postgresql",
    "mysql",
    "zookeeper",
    "etcd",
    "",
];

/// Both ends of a password. No output may contain them.
const HALVES: [&str; 2] = ["s3cr3t", "gehe1m"];

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    scheme: u8,
    /// Text between the two halves that the user forgot to encode.
    unencoded: Option<&'a str>,
    /// Whether the password is in the query, if the scheme allows that.
    in_query: bool,
    rest: &'a str,
    times: [u64; 3],
}

fuzz_target!(|input: Input<'_>| {
    let Input { scheme, unencoded, in_query, rest, times } = input;
    let scheme = SCHEMES[usize::from(scheme) % SCHEMES.len()];
    let pass = match scheme {
        "redis+unix" => Some("/tmp/socket?pass"),
        "redis+sentinel" => Some("h1,h2/name?sentinel_pass"),
        "postgres" | "postgresql" => Some("h1?password"),
        _ => None,
    };
    let url = match (scheme, unencoded) {
        // Text with `=` looks like another setting with a value.
        (_, Some(between)) if in_query && pass.is_some() && !between.contains('=') => {
            let pass = pass.unwrap_or_default();
            format!("{scheme}://{pass}={}{between}{}", HALVES[0], HALVES[1])
        }
        ("", _) => rest.to_owned(),
        (_, None) => format!("{scheme}://{rest}"),
        (_, Some(between)) => {
            format!("{scheme}://user:{}{between}{}@h1,h2,h3{rest}", HALVES[0], HALVES[1])
        }
    };
    let has_password = unencoded.is_some() && !scheme.is_empty();
    // If the rest of the URL contains a half too, an error may show it.
    let is_secret = HALVES.map(|half| has_password && !rest.contains(half));
    let check_output = |shown: &str| {
        for (half, is_secret) in HALVES.iter().zip(is_secret) {
            assert!(
                !is_secret || !shown.contains(half),
                "{url:?} shows a part of its password: {shown}"
            );
        }
    };
    let [one, two, three] = times.map(Duration::from_secs);
    let builder = LockManager::builder().url(&url);
    let builder = match scheme.len() % 2 {
        0 => builder,
        _ => builder.connect_timeout(one).response_timeout(two).heartbeat(three),
    };
    check_output(&format!("{builder:?}"));
    match builder.build() {
        Ok(manager) => check_output(&format!("{manager:?}")),
        Err(error) => {
            let shown = format!("{error} {error:?}");
            assert!(!shown.trim().is_empty());
            check_output(&shown);
        }
    }
});
