//! The same routes on a real PostgreSQL, which the harness starts.

use std::collections::BTreeMap;
use std::process::Command;

use axum::http::StatusCode;
use lockattr::{FencingToken, LockManager, LockOptions};
use lockattr_axum_sqlx::App;
use lockattr_tests::{Node, PostgresServer, RedisServer, bare};
use sqlx::{PgPool, query_scalar};
use tokio::task::JoinSet;

use crate::{Answer, COUNT, ORDER, RESERVE, ask};

/// An instance of the service, as on a machine of its own.
async fn instance(database: &str) -> App {
    let database_locks = LockManager::connect(database).await.unwrap();
    App::open(PgPool::connect(&bare(database)).await.unwrap(), database_locks).await.unwrap()
}

/// Sends the request this many times at once, half of them to either instance. Returns how often
/// each answer came.
async fn rush(
    instances: &[(App, LockManager); 2],
    request: (&'static str, &'static str, &'static str),
    times: usize,
) -> BTreeMap<Answer, usize> {
    let mut at_once = JoinSet::new();
    for nth in 0..times {
        let (app, locks) = instances[nth % 2].clone();
        at_once.spawn(async move {
            loop {
                let answer = ask(&app, &locks, request).await;
                // On a busy machine, the wait for the lock may be over.
                if answer.1.is_none() {
                    return answer;
                }
            }
        });
    }
    let mut answers = BTreeMap::new();
    at_once.join_all().await.into_iter().for_each(|it| *answers.entry(it).or_default() += 1);
    answers
}

/// Red without: the attribute on `orders::place`, together with `and quantity >= $2`; and for the
/// reservations, `acquire_in`.
#[tokio::test]
async fn two_instances_sell_no_more_than_the_stock_wherever_their_locks_are() {
    let redis = RedisServer::start().await;
    for in_redis in [true, false] {
        let (url, _) = PostgresServer::shared().await.new_database().await;
        let (one, two) = (instance(&url).await, instance(&url).await);
        let locks = async |app: &App| match in_redis {
            true => LockManager::connect(redis.url()).await.unwrap(),
            false => app.database_locks.clone(),
        };
        let instances = [(one.clone(), locks(&one).await), (two.clone(), locks(&two).await)];
        assert_eq!(ask(&one, &instances[0].1, ORDER).await, (StatusCode::NOT_FOUND, None));
        assert_eq!(ask(&one, &instances[0].1, COUNT).await, (StatusCode::NO_CONTENT, None));

        let orders = rush(&instances, ORDER, 30).await;
        let (sold, sold_out) = ((StatusCode::CREATED, None), (StatusCode::CONFLICT, None));
        assert_eq!(orders, BTreeMap::from([(sold, 20), (sold_out, 10)]));
        let count = "select count(*) from orders where product = 7";
        let orders: i64 = query_scalar(count).fetch_one(&one.pool).await.unwrap();
        assert_eq!(orders, 20);

        let reservations = rush(&instances, RESERVE, 14).await;
        assert_eq!(reservations, BTreeMap::from([(sold, 10), (sold_out, 4)]));
        let count = "select count(*) from reservations where product = 7";
        let reservations: i64 = query_scalar(count).fetch_one(&one.pool).await.unwrap();
        assert_eq!(reservations, 10);

        let fence = "select fence from stock where product = 7";
        let fence: FencingToken = query_scalar(fence).fetch_one(&one.pool).await.unwrap();
        let next = instances[1].1.acquire("product:7", LockOptions::new()).await.unwrap();
        assert!(next.fencing_token() > fence);
        next.release().await.unwrap();
    }
}

/// Red without: `fence < $3` in `orders::place`.
#[tokio::test]
async fn an_order_that_a_later_holder_overtook_writes_nothing() {
    let (url, _) = PostgresServer::shared().await.new_database().await;
    let app = instance(&url).await;
    let locks = app.database_locks.clone();
    assert_eq!(ask(&app, &locks, COUNT).await, (StatusCode::NO_CONTENT, None));
    let later = sqlx::query("update stock set fence = $1").bind(i64::MAX);
    later.execute(&app.pool).await.unwrap();
    assert_eq!(ask(&app, &locks, ORDER).await, (StatusCode::CONFLICT, Some(1)));
    let left = "select quantity from stock where product = 7";
    let left: i32 = query_scalar(left).fetch_one(&app.pool).await.unwrap();
    assert_eq!(left, 20);
}

/// The program itself: it starts with an empty database, and ends when it is interrupted.
#[tokio::test]
async fn the_program_starts_and_ends() {
    let (url, _) = PostgresServer::shared().await.new_database().await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_axum-sqlx"));
    command.env("DATABASE_URL", bare(&url)).env("LISTEN", "127.0.0.1:0").env_remove("LOCKATTR_URL");
    let mut program = Node::run(command);
    assert!(program.line().await.starts_with("listening on 127.0.0.1:"));
    program.interrupt_signal();
    assert_eq!(program.line().await, "goodbye");
    assert!(program.finish().await.success());
}
