//! Runs as many mutants at a time as their tests let.

use std::sync::{Condvar, Mutex};
use std::thread;

/// Calls `run` with each item, for which it needs as many of the `places` as `size` says. Returns the
/// results in the order of the items, which begin in the order of their sizes: a large one at the end
/// would run alone.
pub(crate) fn all<T: Sync, R: Send>(
    places: usize,
    items: &[T],
    size: impl Fn(&T) -> usize,
    run: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let size = |item: &T| size(item).clamp(1, places);
    let (free, released) = (Mutex::new(places), Condvar::new());
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(size(&items[*index])));
    let mut results: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = order
            .into_iter()
            .map(|index| {
                let (item, size) = (&items[index], size(&items[index]));
                let free_places = free.lock().expect("no panic");
                let mut free_places =
                    released.wait_while(free_places, |free| *free < size).expect("no panic");
                *free_places -= size;
                drop(free_places);
                let (free, released, run) = (&free, &released, &run);
                let thread = scope.spawn(move || {
                    let result = run(item);
                    *free.lock().expect("no panic") += size;
                    released.notify_one();
                    result
                });
                (index, thread)
            })
            .collect();
        started.into_iter().map(|(index, it)| (index, it.join().expect("no panic"))).collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::yield_now;

    use super::all;

    /// Red without: the wait for free places, or the order of the results.
    #[test]
    fn no_more_than_the_places_are_taken() {
        let (taken, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<usize> = (0..200).map(|number| number % 7).collect();
        let results = all(
            5,
            &items,
            |size| *size,
            |item| {
                let size = (*item).clamp(1, 5);
                let now = taken.fetch_add(size, Ordering::SeqCst) + size;
                most.fetch_max(now, Ordering::SeqCst);
                yield_now();
                taken.fetch_sub(size, Ordering::SeqCst);
                *item
            },
        );
        assert_eq!(results, items);
        assert!(most.into_inner() <= 5);
    }
}
