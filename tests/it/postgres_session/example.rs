//! The example `fencing`, run as a user runs it.

use std::process::Command;

use lockattr_tests::{Node, bare, for_store};

use super::Database;

/// Red without: `fence < $2` in the statement that writes.
#[tokio::test]
async fn the_fencing_example_refuses_the_process_that_slept() {
    let database = Database::new().await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencing"));
    // The program's own times are for a machine that runs little else.
    command.env("DATABASE_URL", bare(&database.url)).env("LOCKATTR_URL", for_store(&database.url));
    let mut program = Node::run(command);
    let mut said = Vec::new();
    while said.last().is_none_or(|line: &String| !line.starts_with("in the end")) {
        said.push(program.line().await);
    }
    assert!(program.finish().await.success(), "{said:#?}");
    let place = |words: &str| {
        let found = said.iter().position(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("no line with {words:?}: {said:#?}"))
    };
    let order = [
        "sleeper: holds product:42",
        "(stopped)",
        "next:    holds product:42",
        "next:    has written 95",
        "(goes on)",
        "sleeper: was REFUSED",
        "in the end there are 95 in stock",
    ];
    let places = order.map(place);
    assert!(places.is_sorted(), "{said:#?}");
    let token = |line: &str| -> u64 {
        let word = line.split("token ").nth(1).and_then(|rest| rest.split(',').next());
        word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no token: {line}"))
    };
    let greatest = token(&said[places[2]]);
    assert!(greatest > token(&said[places[0]]), "{said:#?}");
    let row = "select quantity, fence from fencing_example where id = 42";
    let row = database.client().await.query_one(row, &[]).await.unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i64>(1).unsigned_abs()), (95, greatest));
}
