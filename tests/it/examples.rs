//! The example programs, run as a user runs them: their output is true, and they leave nothing in
//! the store.

mod nightly;
mod partner;
mod scheduler;
mod transfer;

use std::process::Command;

use lockattr_tests::{HUNG, Node, PostgresServer, RedisServer, assert_nothing_left, eventually};

/// The store that an example uses.
enum Store {
    Memory,
    Redis(RedisServer),
    Postgres { url: String, schema: String },
}

impl Store {
    async fn all() -> [Self; 3] {
        let (url, schema) = PostgresServer::shared().await.new_schema().await;
        [Self::Memory, Self::Redis(RedisServer::start().await), Self::Postgres { url, schema }]
    }

    /// Runs the program `path` to its successful end. Returns its output.
    async fn run(&self, path: &str) -> Vec<String> {
        let mut command = Command::new(path);
        match self {
            Self::Memory => command.env_remove("LOCKATTR_URL"),
            Self::Redis(server) => command.env("LOCKATTR_URL", server.url()),
            Self::Postgres { url, .. } => command.env("LOCKATTR_URL", url),
        };
        let mut program = Node::run(command);
        let mut said = Vec::new();
        while let Some(line) = program.line_within(HUNG).await {
            said.push(line);
        }
        assert!(program.finish().await.success(), "{path}: {said:#?}");
        said
    }

    async fn assert_nothing_left(&self) {
        match self {
            Self::Memory => {}
            Self::Redis(server) => assert_nothing_left(server).await,
            Self::Postgres { schema, .. } => {
                let client = PostgresServer::shared().await.client().await;
                // Expired rows are swept by later calls.
                let taken = format!(
                    "select (select count(*) from {schema}.lockattr_locks where ends > now())
                     + (select count(*) from {schema}.lockattr_holders where ends > now())
                     + (select count(*) from {schema}.lockattr_queue)"
                );
                let free =
                    async || client.query_one(&taken, &[]).await.unwrap().get::<_, i64>(0) == 0;
                eventually("no name in the schema is in use", free).await;
            }
        }
    }
}

/// Returns how many lines contain all of `words`.
fn count(said: &[String], words: &[&str]) -> usize {
    said.iter().filter(|line| words.iter().all(|word| line.contains(word))).count()
}
