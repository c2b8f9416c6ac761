//! `DATABASE_URL=postgres://postgres@127.0.0.1/postgres cargo run -p lockattr-axum-sqlx`
//!
//! ```text
//! curl -X PUT localhost:3000/products/7 -H 'content-type: application/json' -d '{"quantity": 10}'
//! curl -X POST localhost:3000/products/7/orders -H 'content-type: application/json' -d '{"quantity": 3}'
//! curl -X POST localhost:3000/products/7/reservations
//! ```
//!
//! The attribute's locks are in the same database, or in the store of `LOCKATTR_URL`
//! (`redis://127.0.0.1/`). `LISTEN` is the address, `127.0.0.1:3000`.

use std::env;
use std::error::Error;

use lockattr::LockManager;
use lockattr_axum_sqlx::{App, run};
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
#[allow(clippy::print_stdout)]
async fn main() -> Result<(), Box<dyn Error>> {
    let database = env::var("DATABASE_URL").map_err(|_| "set DATABASE_URL to a postgres:// URL")?;
    // A second manager opens connections of its own, so without LOCKATTR_URL there is only one.
    let database_locks = LockManager::connect(&database).await?;
    let locks = match env::var("LOCKATTR_URL") {
        Ok(url) => LockManager::connect(url).await?,
        Err(_) => database_locks.clone(),
    };
    locks.install()?;

    let app = App::open(PgPool::connect(&database).await?, database_locks).await?;
    let address = env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".into());
    let listener = TcpListener::bind(address).await?;
    // What orchestrators send, and Ctrl-C. Registered here, so that the first one is not missed.
    let mut terminates = signal(SignalKind::terminate())?;
    let mut interrupts = signal(SignalKind::interrupt())?;
    println!("listening on {}", listener.local_addr()?);
    let stops = async move {
        tokio::select! {
            _ = terminates.recv() => {}
            _ = interrupts.recv() => {}
        }
    };
    run(listener, app, locks, stops).await?;
    println!("goodbye");
    Ok(())
}
