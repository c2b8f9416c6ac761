//! A service that ends well: on Ctrl-C nothing more is granted, running jobs are notified, and every
//! lock is given back before the process is gone.
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

/// Counts a shop's stock. There is nothing to tidy up: told to stop, it is dropped at its await.
#[distributed_lock(key = "stock:<shop>")]
async fn count_stock(worker: usize, shop: &str) -> Result<(), Error> {
    println!("worker {worker}: counts the stock of {shop}");
    sleep(Duration::from_secs(2)).await;
    Ok(())
}

/// Packs a shop's parcels. One that is half packed must be closed first, so it is not dropped but
/// asks, and the lock is given back only after it.
#[distributed_lock(key = "parcels:<shop>", on_lost = error, lease = lease)]
async fn pack_parcels(worker: usize, shop: &str) -> Result<(), Error> {
    for parcel in 1..=4 {
        lease.ensure_held()?;
        println!("worker {worker}: packs parcel {parcel} for {shop}");
        tokio::select! {
            () = sleep(Duration::from_millis(500)) => {}
            () = lease.lost() => {
                println!("worker {worker}: was told, and closes parcel {parcel}");
                sleep(Duration::from_millis(200)).await;
            }
        }
    }
    Ok(())
}

/// One job after the other, each worker beginning with another one, until none is granted.
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
                println!("worker {worker}: goes home, {key} was not granted any more");
                return;
            }
            // Somebody else's turn, a lease cut short, a store that is away: the next job.
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
        println!("shutting down: nothing more is granted, and whoever holds is told");
        manager.shutdown().await;
        println!("all released");
    };
    // Biased: it listens to Ctrl-C before the workers say their first word.
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
