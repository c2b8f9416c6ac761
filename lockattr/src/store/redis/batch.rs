//! Many claims at once: one script for each connection and hundred.

use std::collections::HashMap;

use futures_util::future::join_all;
use redis::ScriptInvocation;

use super::node::{Node, Place};
use super::replicas::Answer;
use crate::store::StoreError;

/// Most locks in one script: a longer one would keep the server's other clients waiting.
const BATCH: usize = 100;

impl Node {
    /// Asks about many claims, all at once, and gives the answers back in the order of `items`.
    pub(super) async fn invoke_batch<'s, I, A: Clone>(
        &self,
        items: &[I],
        script: impl Fn(&[&I]) -> ScriptInvocation<'s>,
        place: impl Fn(&I) -> Place,
        answer: impl Fn(bool) -> A,
    ) -> Vec<Result<A, StoreError>> {
        let mut by_place = HashMap::<_, Vec<_>>::new();
        for (index, item) in items.iter().enumerate() {
            by_place.entry(place(item)).or_default().push(index);
        }
        let batches = by_place.iter().flat_map(|(&place, indexes)| {
            indexes.chunks(BATCH).map(move |indexes| (place, indexes))
        });
        let missing = StoreError::new("the server's answer was too short");
        // That it is not held is a fact, whatever the replicas have.
        let counts = |held: u8, replicated: &Result<(), StoreError>| match held == b'1' {
            true => replicated.clone().map(|()| answer(true)),
            false => Ok(answer(false)),
        };
        if let [item] = items {
            let reply = self.invoke::<String>(place(item), &script(&[item])).await;
            return vec![reply.and_then(|Answer { value, replicated }| {
                value.bytes().next().ok_or(missing).and_then(|held| counts(held, &replicated))
            })];
        }
        let script = &script;
        let replies = batches.map(|(place, indexes)| async move {
            let asked: Vec<_> = indexes.iter().map(|&index| &items[index]).collect();
            (indexes, self.invoke::<String>(place, &script(&asked)).await)
        });
        let mut answers = vec![Err(missing); items.len()];
        for (indexes, reply) in join_all(replies).await {
            for (nth, &index) in indexes.iter().enumerate() {
                match &reply {
                    Ok(Answer { value, replicated }) => {
                        if let Some(&held) = value.as_bytes().get(nth) {
                            answers[index] = counts(held, replicated);
                        }
                    }
                    Err(error) => answers[index] = Err(error.clone()),
                }
            }
        }
        answers
    }
}
