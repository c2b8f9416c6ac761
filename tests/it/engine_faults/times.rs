//! Times that no clock reaches, in the numbers of each server and of the system.

use lockattr_tests::{Engine, in_time, with_query};

use super::{Case, add_one, connected};

/// Red without: the upper bound of what `settings` of PostgreSQL's sessions tells the server, or `at_most_a_century` in
/// `duration`.
pub(super) async fn times_without_a_bound_work<E: Engine>(case: Case<'_, E>) {
    let mut names = vec!["connect_timeout", "response_timeout", "wait", "retry_delay"];
    // The interval between ZooKeeper's pings depends on its session.
    if !case.engine.url().starts_with("zookeeper:") {
        names.push("heartbeat");
    }
    let never: Vec<_> = names.iter().map(|name| format!("{name}=500000000000y")).collect();
    let url = case.engine.url_with(&never.join("&"));
    let manager = in_time(connected(&url)).await;
    let held = case.acquire(&manager).await;
    let waiting = case.spawn_waiter(in_time(connected(&url)).await);
    case.waits(1).await;
    add_one(&case.resource, &held).await;
    in_time(held.release()).await.unwrap();
    in_time(waiting).await.unwrap();
    if ["postgres:", "mysql:"].iter().any(|scheme| url.starts_with(scheme)) {
        let sessions = in_time(connected(&with_query(&url, "lock=session"))).await;
        in_time(case.acquire(&sessions).await.release()).await.unwrap();
    }
    case.nothing_left().await;
}
