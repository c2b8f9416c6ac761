//! The list of annotated functions of this program.

use std::time::Duration;

use lockattr::{AnnotatedLock, Error, distributed_lock, registry};

const LINE_OF_FREE: u32 = line!() + 2;

#[distributed_lock(key = "registry:<id>/<name.trim()>", ttl = "10s", retry = 2 + 1)]
async fn free(id: u64, name: &str) -> Result<(), Error> {
    Ok(())
}

struct Desk<T> {
    ttl: Duration,
    _of: T,
}

trait Close {
    #[distributed_lock(key = "registry:default", on_busy = return(Err(()).or(Ok(()))))]
    async fn in_a_trait(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn close(&self) -> Result<(), Error>;
}

impl<T> Close for Desk<T> {
    #[distributed_lock(
        keys = ["registry:a", format_args!("registry:{}", 1)],
        ttl = self.ttl
            .max(Duration::from_secs(1)),
        lease = _lease,
    )]
    async fn close(&self) -> Result<(), Error> {
        #[distributed_lock(key = "registry:nested")]
        async fn nested<U>(_of: &U) -> Result<(), Error> {
            Ok(())
        }
        nested(&self._of).await
    }
}

mod never_called {
    #[lockattr::distributed_lock(key = "registry:never")]
    pub(super) async fn never() -> Result<(), super::Error> {
        Ok(())
    }
}

macro_rules! house {
    ($name:ident, $key:literal, $ttl:expr) => {
        #[distributed_lock(key = $key, ttl = $ttl)]
        async fn $name() -> Result<(), Error> {
            Ok(())
        }
    };
}

house!(by_a_macro, "registry:macro", "5s");

fn of_this_file() -> Vec<&'static AnnotatedLock> {
    registry().into_iter().filter(|lock| lock.file == file!()).collect()
}

#[test]
fn the_registry_lists_every_annotated_function_as_it_is_written() {
    // The functions are never called; that they exist is enough.
    let _never = (free, never_called::never, by_a_macro);
    let _desk = |desk: Desk<u8>| drop(desk.in_a_trait());
    let shown: Vec<_> = of_this_file()
        .iter()
        .map(|lock| {
            lock.to_string().replace(concat!(module_path!(), "::"), "").replace(file!(), "")
        })
        .map(|line| line[1..].split_once(": ").unwrap().1.to_owned())
        .collect();
    assert_eq!(
        shown,
        [
            r#"free locks registry:<id>/<name.trim()> (ttl = "10s", retry = 2 + 1)"#,
            "in_a_trait locks registry:default (on_busy = return(Err(()).or(Ok(()))))",
            "close locks registry:a, format_args!(\"registry:{}\", 1) \
             (ttl = self.ttl .max(Duration::from_secs(1)), lease = _lease)",
            "nested locks registry:nested",
            "never_called::never locks registry:never",
            r#"by_a_macro locks registry:macro (ttl = "5s")"#,
        ]
    );
}

#[test]
fn each_registry_entry_has_its_function_its_line_and_its_options() {
    let free = of_this_file()[0];
    assert_eq!(free.line, LINE_OF_FREE);
    assert_eq!(free.function, concat!(module_path!(), "::free"));
    assert_eq!((free.template, free.keys), ("registry:<id>/<name.trim()>", &[free.template][..]));
    assert_eq!((free.option("ttl"), free.option("retry")), (Some("\"10s\""), Some("2 + 1")));
    assert_eq!((free.option("key"), free.option("wait")), (None, None));

    let lines: Vec<_> = of_this_file().iter().map(|lock| lock.line).collect();
    assert!(lines.is_sorted(), "{lines:?}");
    let files: Vec<_> = registry().iter().map(|lock| lock.file).collect();
    assert!(files.is_sorted(), "{files:?}");
}

/// The templates of the registry are those of the records, spans and metrics.
#[tokio::test(start_paused = true)]
async fn a_template_has_the_same_name_in_the_registry_and_in_records() {
    let locks = lockattr::testing::TestLocks::new();
    locks.scope(Desk { ttl: Duration::ZERO, _of: () }.close()).await.unwrap();
    let close = of_this_file()[2];
    assert_eq!(locks.acquisitions()[0].template, Some(close.template));
    assert_eq!(locks.acquisitions()[0].function, Some(close.function));
}
