//! Functions that lead: each term has its own arguments, and the future can be spawned.
#![deny(warnings)]

use std::sync::Arc;

use lockattr::{Error, LockManager, distributed_lock};

#[derive(Clone)]
struct Job(String);

struct Scheduler {
    region: String,
    jobs: Vec<Job>,
}

impl Scheduler {
    #[distributed_lock(key = "scheduler:<self.region>", lead = true, progress_within = "30s", term = term)]
    async fn run(
        &self,
        mut jobs: Vec<Job>,
        _unused: u8,
        (rounds, step): (u32, u32),
    ) -> Result<u32, Error> {
        jobs.extend(self.jobs.iter().cloned());
        let mut done = 0;
        for job in jobs {
            let _name = &job.0;
            term.progress();
            done += rounds * step;
        }
        let _number = term.number();
        Ok(done)
    }

    #[distributed_lock(key = "scheduler", lead = true)]
    async fn run_shared(this: Arc<Self>, name: &str) -> Result<usize, Error> {
        Ok(this.jobs.len() + name.len())
    }
}

#[distributed_lock(key = "sweeper", lead = true, ttl = "5s", max_hold = "1h", manager = manager)]
async fn sweep<T>(manager: &LockManager, value: T) -> Result<T, Error>
where
    T: Clone + Send + Sync,
{
    tokio::task::yield_now().await;
    Ok(value)
}

#[tokio::test]
async fn compiles_and_runs() -> Result<(), Error> {
    let manager = LockManager::connect("memory://").await?;
    let scheduler =
        Arc::new(Scheduler { region: "eu".into(), jobs: vec![Job("a".into()), Job("b".into())] });
    let by_reference = scheduler.clone();
    let spawned = tokio::spawn(
        manager.scope(async move { by_reference.run(vec![Job("c".into())], 0, (2, 5)).await }),
    );
    assert_eq!(spawned.await.expect("it does not panic")?, 30);
    let spawned = tokio::spawn(manager.scope(Scheduler::run_shared(scheduler, "main")));
    assert_eq!(spawned.await.expect("it does not panic")?, 6);
    let spawned = tokio::spawn(async move { sweep(&manager, "dust".to_owned()).await });
    assert_eq!(spawned.await.expect("it does not panic")?, "dust");
    Ok(())
}
