//! Kinds of servers, and which tests of `it` start one.

use crate::test::skipping;

/// Servers with the same protocol.
pub(super) struct Kind {
    /// The tests that start one, by parts of their names.
    tests: &'static [&'static str],
    /// Those of them that are left out.
    left_out: &'static [&'static str],
}

pub(super) const REDIS: Kind = Kind {
    tests: &[
        "cluster",
        "counterexamples::",
        "examples::",
        "harness::",
        "mutated::",
        "plaintext::",
        "redis",
        "redlock",
        "replicas",
        "runtimes::blocked::",
        "scale::",
        "secrets::",
        "sentinel",
        "share::",
        "shutdown::away::",
        "wait_queue::histories::",
        "wait_queue::keys::",
        "wait_queue::permits::",
        "wait_queue::readers::",
    ],
    // A leader asks nothing of a server that other locks do not, so one topology suffices.
    left_out: &["leader_faults::cluster", "leader_faults::redlock", "leader_faults::sentinel"],
};

pub(super) const MYSQL: Kind =
    Kind { tests: &["mutated::", "mysql", "postgres::columns::"], left_out: &[] };

pub(super) const POSTGRES: Kind = Kind {
    tests: &["examples::", "mutated::", "postgres", "share::"],
    // They have the same ending as `examples::`.
    left_out: &["counterexamples::"],
};

impl Kind {
    /// Returns the tests as filters of the test program.
    pub(super) fn filters(&self) -> Vec<&'static str> {
        [self.tests, &skipping(self.left_out)].concat()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Kind, MYSQL, POSTGRES, REDIS};
    use crate::child;

    /// What the code calls the servers of a kind, and the modules whose functions start one.
    const NAMES: [(Kind, &[&str]); 3] = [
        (
            REDIS,
            &[
                "RedisServer",
                "Cluster",
                "Sentinels",
                "Independents",
                "Replicated",
                "crate::redis",
                "crate::redlock",
            ],
        ),
        (MYSQL, &["MariaDb", "crate::mysql"]),
        (POSTGRES, &["PostgresServer", "PgBouncer", "crate::postgres", "crate::postgres_session"]),
    ];

    /// Modules whose tests run on every store, each time in a module with the store's name, and the
    /// files with these names.
    const SUITES: [(&str, &str); 5] = [
        ("connecting::names::", "harness/engine.rs"),
        ("engine_faults::", "harness/engine.rs"),
        ("leader_faults::", "it/leader_faults.rs"),
        ("queue_promises::", "it/queue_promises.rs"),
        ("store_contract::", "it/store_contract.rs"),
    ];

    /// The stores that have no newer server.
    const OTHERS: [&str; 4] = ["etcd", "memory", "quorum", "zookeeper"];

    impl Kind {
        fn has(&self, module: &str) -> bool {
            self.tests.iter().any(|part| module.contains(part))
        }
    }

    /// Returns the code of a file without comments.
    fn code(file: &Path) -> String {
        let text = fs::read_to_string(file).expect("a file");
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        text.lines().filter(is_code).collect::<Vec<_>>().join("\n")
    }

    /// Returns the modules below `parent` in a folder, with their code.
    fn modules(folder: &Path, parent: &str) -> Vec<(String, String)> {
        let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().path());
        let of = |file: std::path::PathBuf| {
            let module = format!("{parent}{}::", file.file_stem().expect("a name").display());
            if file.is_dir() { modules(&file, &module) } else { vec![(module, code(&file))] }
        };
        files.flat_map(of).collect()
    }

    fn has_word(code: &str, word: &str) -> bool {
        let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        code.match_indices(word).any(|(at, _)| {
            !code[..at].ends_with(is_letter) && !code[at + word.len()..].starts_with(is_letter)
        })
    }

    /// Red without: `plaintext::` of Redis, `postgres::columns::` of MySQL, or `examples::` of
    /// PostgreSQL.
    #[test]
    fn every_module_that_starts_a_server_runs_on_the_newest() {
        let mut modules = modules(&child::root().join("tests/it"), "");
        modules.retain(|(module, _)| !SUITES.iter().any(|(suite, _)| module.starts_with(suite)));
        for (kind, names) in NAMES {
            for (module, code) in &modules {
                let named = names.iter().find(|name| has_word(code, name));
                assert!(named.is_none() || kind.has(module), "{module} names {named:?}");
            }
        }
    }

    /// Returns the names of the stores in a suite: `redis: lockattr_tests::RedisServer`.
    fn stores(code: &str) -> Vec<&str> {
        let rows = code.split(['\n', ',', '(', '{']).filter_map(|row| row.trim().split_once(": "));
        let is_row = |(name, server): &(&str, &str)| {
            let is_letter = |letter: char| letter.is_ascii_lowercase() || letter == '_';
            let starts = ["lockattr_tests::", "$crate::", "On", "With", "InMemory", "Quorum"];
            name.chars().all(is_letter) && starts.iter().any(|start| server.starts_with(start))
        };
        rows.filter(is_row).map(|(name, _)| name).collect()
    }

    /// Red without: `replicas` of Redis.
    #[test]
    fn every_store_of_a_suite_runs_on_the_newest_or_has_none() {
        for (suite, file) in SUITES {
            let code = code(&child::root().join("tests").join(file));
            let stores = stores(&code);
            assert!(stores.len() >= 5, "{suite} {stores:?}");
            for store in stores {
                let runs = NAMES.iter().any(|(kind, _)| kind.has(store));
                assert!(runs || OTHERS.contains(&store), "{suite}{store}");
            }
        }
    }
}
