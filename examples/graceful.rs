//! Graceful shutdown: on Ctrl-C nothing more is granted, running jobs are notified, and every lock
//! is released before the process exits.
//!
//! ```text
//! cargo run --example graceful                                         # then press Ctrl-C
//! LOCKATTR_URL=redis://127.0.0.1/ cargo run --example graceful         # in several terminals
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::time::Duration;

use lockattr::{Error, LockManager, distributed_lock};
use tokio::signal::ctrl_c;
use tokio::time::sleep;

const SHOPS: [&str; 2] = ["Oslo", "Lima"];

/// Counts a shop's stock. It needs no cleanup: at shutdown it is cancelled at its await.
#[distributed_lock(key = "stock:<shop>")]
async fn count_stock(worker: usize, shop: &str) -> Result<(), Error> {
    println!("worker {worker}: counts the stock of {shop}");
    sleep(Duration::from_secs(2)).await;
    Ok(())
}

/// Packs a shop's parcels. A half-packed parcel must be closed first, so the function is not
/// cancelled but checks the lease, and the lock is released only when it returns.
#[distributed_lock(key = "parcels:<shop>", on_lost = error, lease = lease)]
async fn pack_parcels(worker: usize, shop: &str) -> Result<(), Error> {
    for parcel in 1..=4 {
        lease.ensure_held()?;
        println!("worker {worker}: packs parcel {parcel} for {shop}");
        tokio::select! {
            () = sleep(Duration::from_millis(500)) => {}
            () = lease.lost() => {
                println!("worker {worker}: was notified, and closes parcel {parcel}");
                sleep(Duration::from_millis(200)).await;
            }
        }
    }
    Ok(())
}

/// Runs one job after the other, until the manager grants no more locks. Each worker begins with a
/// different job.
async fn work(worker: usize) {
    for round in worker.. {
        let shop = SHOPS[round / 2 % SHOPS.len()];
        let done = match round % 2 {
            0 => count_stock(worker, shop).await,
            _ => pack_parcels(worker, shop).await,
        };
        match done {
            Ok(()) => {}
            Err(Error::ShutDown { key }) => {
                println!("worker {worker} stops: {key} was not granted");
                return;
            }
            // The lock is held elsewhere, or the lease was lost, or the store is down: try the next
            // job.
            Err(error) => println!("worker {worker}: {error}"),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let url = std::env::var("LOCKATTR_URL").unwrap_or_else(|_| "memory://".into());
    let manager = LockManager::connect(&url).await?;
    manager.install()?;

    let end_well = async {
        if let Err(error) = ctrl_c().await {
            println!("no Ctrl-C to wait for ({error}), so that was all");
        }
        println!("shutting down: nothing more is granted, and holders are notified");
        manager.shutdown().await;
        println!("all released");
    };
    // Biased, so that the Ctrl-C handler is installed before a worker prints.
    tokio::join!(biased; end_well, work(1), work(2), work(3));
    for shop in SHOPS {
        for key in [format!("stock:{shop}"), format!("parcels:{shop}")] {
            match manager.holder(&key).await? {
                None => println!("{key} is free"),
                Some(holder) => println!("{key} is held by {holder}"),
            }
        }
    }
    println!("goodbye");
    Ok(())
}
