//! The rights that the docs name: the tests run with those, and no others.

use lockattr_tests::RedisServer;

/// All rights that a user of one server needs. The whole contract suite runs with them, as
/// `redis_with_least_rights`; kinds of stores that need others have their own, with a row in
/// [`DOCUMENTED`].
pub(crate) const RIGHTS: &str = "resetkeys ~lock:* ~lockattr:* resetchannels &lockattr:inbox:* \
                                 -@all +hello +ping +select +script|load +evalsha +subscribe \
                                 +publish +get +getdel +set +incr +incrby +del +exists +pttl +pexpire +time \
                                 +zadd +zcard +zcount +zrange +zrem +zremrangebyscore +zrank +zscore";

/// Rights, and the source file whose docs name them.
const DOCUMENTED: [(&str, &str); 1] =
    [(RIGHTS, include_str!("../../../lockattr/src/engines/redis.rs"))];

/// Red without: any of the words in the docs of `RedisStore`.
#[test]
fn the_tested_rights_are_those_of_the_docs() {
    for (rights, source) in DOCUMENTED {
        let docs: Vec<_> = source.lines().filter_map(|line| line.strip_prefix("///")).collect();
        let docs = docs.join(" ");
        let (_, documented) =
            docs.split_once("ACL SETUSER locker on >… ").expect("the docs list rights");
        let documented = documented.split("```").next().unwrap_or_default();
        assert_eq!(words(documented), words(rights));
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// The line can be typed as printed, and its order does not matter.
#[tokio::test]
async fn a_server_accepts_the_acl_line_of_the_docs() {
    let server = RedisServer::start().await;
    let cli = server.cli().await;
    for (rights, _) in DOCUMENTED {
        let mut line = vec!["ACL", "SETUSER", "locker", "on", ">s3cret"];
        line.extend(words(rights));
        cli.query::<()>(&line).await;
        let refused = cli.query::<String>(&["ACL", "DRYRUN", "locker", "KEYS", "*"]).await;
        assert!(refused.contains("no permissions"), "{refused}");
        let refused = cli.query::<String>(&["ACL", "DRYRUN", "locker", "GET", "other"]).await;
        assert!(refused.contains("no permissions"), "{refused}");
        let granted = cli.query::<String>(&["ACL", "DRYRUN", "locker", "GET", "lock:a"]).await;
        assert_eq!(granted, "OK");
    }
}
