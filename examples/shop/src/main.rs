//! A web shop: its stock is in PostgreSQL, its locks there or in Redis, and it runs on any number
//! of machines.
//!
//! ```text
//! DATABASE_URL=postgres://postgres@127.0.0.1/postgres LOCKATTR_URL=redis://127.0.0.1/ \
//!     cargo run -p lockattr-shop
//! curl -X PUT  localhost:3000/products/7 -H 'content-type: application/json' -d '{"quantity": 10}'
//! curl -X POST localhost:3000/products/7/orders -H 'content-type: application/json' -d '{"quantity": 3}'
//! curl localhost:3000/metrics
//! ```
//!
//! | variable | meaning |
//! |---|---|
//! | `DATABASE_URL` | where the stock is |
//! | `LOCKATTR_URL` | where the locks are; the same database if it is not set |
//! | `SHOP_LISTEN` | the address to listen on, `127.0.0.1:3000` |
//! | `SHOP_LOG` | what to log, `info`; `info,lockattr=debug` shows each lock |
//! | `SHOP_PACKING` | how long it takes to pack an order, in milliseconds |

mod failure;
mod inventory;
mod routes;
mod settings;
mod stock;
mod telemetry;

use std::error::Error;
use std::time::Duration;

use lockattr::LockManager;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use settings::Settings;

/// How long orders may go on after the signal to stop: less than the grace period of the
/// orchestrator.
const DRAINS_WITHIN: Duration = Duration::from_secs(15);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let settings = Settings::from_env()?;
    // Before the manager, which describes its metrics to the recorder.
    let metrics = telemetry::start(&settings.log)?;
    let stock = stock::Stock::open(&settings.database).await?;
    let locks = LockManager::builder().url(&settings.locks).service("shop").connect().await?;
    locks.install()?;

    let shop = routes::Shop { stock, locks: locks.clone(), metrics, packing: settings.packing };
    let listener = TcpListener::bind(&settings.listen).await?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    let serves = axum::serve(listener, routes::all(shop)).with_graceful_shutdown(async {
        shutdown_signal().await;
        tracing::info!("ending: no more requests, those under way go on");
    });
    let too_long = async {
        shutdown_signal().await;
        tokio::time::sleep(DRAINS_WITHIN).await;
    };
    tokio::select! {
        served = serves => served?,
        () = too_long => tracing::warn!("some requests take too long and lose their locks"),
    }
    // Only now, or all orders in progress would lose their locks. Remaining locks are released.
    locks.shutdown().await;
    tracing::info!("goodbye");
    Ok(())
}

/// Waits for SIGTERM, which orchestrators send, or for Ctrl-C.
async fn shutdown_signal() {
    let received = async |kind| match signal(kind) {
        Ok(mut signals) => _ = signals.recv().await,
        Err(error) => {
            tracing::error!(%error, "a signal to end would not be received");
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = received(SignalKind::terminate()) => {}
        () = received(SignalKind::interrupt()) => {}
    }
}
