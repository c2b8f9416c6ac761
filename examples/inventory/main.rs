//! A flash sale: one hundred buyers, sixty items, and a stock that is read and written back after a
//! pause. Once without the lock, once with it.
//!
//! ```text
//! cargo run --example inventory                                        # tasks, in memory
//! LOCKATTR_URL=redis://127.0.0.1/ cargo run --example inventory        # four processes, on Redis
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

mod report;
mod sale;
mod shelf;
mod shop;

use report::Report;
use sale::Way;
use shelf::Shelf;
use shop::Shop;
use tokio::time::Instant;

/// Items in stock.
const STOCK: i64 = 60;
/// Processes (tasks on `memory://`), and buyers in each.
const SHOPS: usize = 4;
const BUYERS: usize = 25;

#[tokio::main]
async fn main() -> Result<(), shop::Failure> {
    let url = std::env::var("LOCKATTR_URL").unwrap_or_else(|_| "memory://".into());
    let manager = lockattr::LockManager::builder().url(&url).service("inventory").connect().await?;
    manager.install()?;
    let shelf = Shelf::open(&url).await?;

    // In a child process of the sale: the buyers of one shop.
    if let Some(way) = std::env::args().nth(1) {
        let way = Way::parse(&way).ok_or("usage: inventory [with|without]")?;
        shop::serve_parent(&shelf, way).await?;
        manager.shutdown().await;
        return Ok(());
    }

    println!("{SHOPS} × {BUYERS} buyers, {STOCK} pieces, {}\n", shelf.where_it_is());
    let report = Report::new();
    let mut results = Vec::new();
    for way in [Way::Without, Way::With] {
        shelf.fill(STOCK).await?;
        let mut shops = Vec::new();
        for _ in 0..SHOPS {
            shops.push(Shop::open(&shelf, way)?);
        }
        let started = Instant::now();
        let outcomes = shop::run_all(shops, || report.tick(way)).await?;
        results.push(report::Column::new(outcomes, shelf.pieces().await?, started.elapsed()));
    }
    report.finish();
    report::print_table(&results);
    shelf.clear().await?;
    manager.shutdown().await;
    Ok(())
}
