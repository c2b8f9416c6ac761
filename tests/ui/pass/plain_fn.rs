#![deny(warnings)]

use std::fmt::Display;

use lockattr::{Error, LockManager, distributed_lock};

#[derive(Debug)]
enum Failure {
    Lock(Error),
    SoldOut,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

/// Borrows, returns early, uses `?`, and needs no `Send`.
#[distributed_lock(key = "product:<id>", ttl = "10s", retry = 10, lease = lease)]
fn deduct(id: impl Display, stock: &std::cell::Cell<u32>, mut wanted: u32) -> Result<u32, Failure> {
    assert_eq!(lease.key(), format!("product:{id}"));
    if wanted > stock.get() {
        return Err(Failure::SoldOut);
    }
    lease.ensure_held()?;
    while wanted > 0 {
        stock.set(stock.get() - 1);
        wanted -= 1;
    }
    Ok(stock.get())
}

struct Shelf<'a, T: ?Sized, const N: usize> {
    rows: [&'a T; N],
}

impl<'a, T: ?Sized, const N: usize> Shelf<'a, T, N> {
    #[distributed_lock(key = "shelf:<N>", on_lost = ignore)]
    unsafe fn first<'b>(&'b mut self) -> Result<&'b mut &'a T, Error> {
        Ok(&mut self.rows[0])
    }

    #[distributed_lock(key = "shelf", on_busy = skip)]
    fn tidy(self) {
        assert!(!self.rows.is_empty());
    }
}

#[distributed_lock(key = "numbers")]
fn numbers(to: u32) -> Result<impl IntoIterator<Item = u32>, Error> {
    Ok((0..to).collect::<Vec<_>>())
}

#[test]
fn compiles_and_runs() {
    let manager = LockManager::connect_blocking("memory://").unwrap();
    manager.scope_blocking(|| {
        let stock = std::cell::Cell::new(5);
        assert_eq!(deduct(42, &stock, 2).unwrap(), 3);
        assert!(matches!(deduct("tea", &stock, 9), Err(Failure::SoldOut)));
        let mut shelf = Shelf { rows: ["a", "b"] };
        *unsafe { shelf.first() }.unwrap() = "c";
        assert_eq!(shelf.rows, ["c", "b"]);
        shelf.tidy();
        assert_eq!(numbers(4).unwrap().into_iter().sum::<u32>(), 6);
    });
    assert!(matches!(
        deduct(42, &std::cell::Cell::new(5), 2),
        Err(Failure::Lock(Error::NoManager))
    ));
}
