//! For operators: lists the held locks under a prefix, and takes a lock from a holder.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};
use redis::{Cmd, Value};

use super::call::Call;
use super::node::Effect;
use super::request::{holder, queue_of};
use super::servers::Route;
use super::{RedisStore, is_ours};
use crate::store::{LockKey, StoreError};
use crate::{HeldLock, HeldLocks, HolderId};

/// The most locks in one script: a longer run would block the server's other clients.
const BATCH: usize = 100;

/// How many scripts are under way at once: more would only wait in the connection, where their
/// response timeout already runs.
const AT_ONCE: usize = 32;

/// How many names the server reads for one reply.
const PAGE: usize = 1000;

/// A page of the server's names: the cursor of the next page, and the names.
pub(super) type Page = (Vec<u8>, Vec<Vec<u8>>);

impl RedisStore {
    /// Returns the held locks whose names begin with `prefix`.
    pub(super) async fn held_locks_of_all(&self, prefix: &str) -> Result<HeldLocks, StoreError> {
        let mut listed = HeldLocks::default();
        let mut by_route = BTreeMap::<_, Vec<_>>::new();
        // The servers may report a name several times.
        let names: BTreeSet<_> = self.servers.names(prefix).await?.into_iter().collect();
        for name in names {
            let name = match String::from_utf8(name) {
                Ok(name) if is_ours(&name) => continue,
                Ok(name) => name,
                Err(_) => {
                    listed.left_out += 1;
                    continue;
                }
            };
            match name.strip_prefix(prefix).map(|key| LockKey::new(prefix, key)) {
                Some(Ok(key)) => {
                    by_route.entry(self.servers.route(&key)).or_default().push(name);
                }
                _ => listed.left_out += 1,
            }
        }
        let mut requests = Vec::new();
        for (route, names) in &by_route {
            requests
                .extend(names.chunks(BATCH).map(|names| self.held_locks_in(*route, names, prefix)));
        }
        let mut requests = requests.into_iter();
        listed.locks = match requests.next() {
            // Alone: it may load the script, once for all of them.
            Some(first) => first.await?,
            None => return Ok(listed),
        };
        let mut replies = stream::iter(requests).buffer_unordered(AT_ONCE);
        while let Some(reply) = replies.next().await {
            listed.locks.extend(reply?);
        }
        Ok(listed)
    }

    async fn held_locks_in(
        &self,
        route: Route,
        names: &[String],
        prefix: &str,
    ) -> Result<Vec<HeldLock>, StoreError> {
        let bytes = names.iter().map(|name| 2 * name.len() + 24).sum();
        let mut script = Call::new(&self.scripts.held_locks, 2 * names.len(), bytes);
        let fence = self.servers.fence(route);
        for name in names {
            script.arg(name.as_str()).arg(queue_of(name, &fence));
        }
        let routed = self.servers.invoke(route, Effect::Read, &script).await?;
        held(&routed.reply.value, names, prefix).ok_or_else(|| routed.live.distrusted())
    }

    /// Takes a lock from the holder with this id.
    pub(super) async fn force_release_of(
        &self,
        key: &LockKey,
        holder: HolderId,
    ) -> Result<bool, StoreError> {
        let (route, name) = (self.servers.route(key), key.name());
        let fence = self.servers.fence(route);
        let mut script = Call::new(&self.scripts.force_release, 3, 3 * name.len() + 64);
        script.arg(&*fence).arg(name).arg(queue_of(name, &fence)).arg(holder.to_string());
        let routed = self.servers.invoke::<i64>(route, Effect::Release, &script).await?;
        match routed.reply.value {
            0 => Ok(false),
            1 => Ok(true),
            -1 => Err(not_a_lock(key)),
            _ => Err(routed.live.distrusted()),
        }
    }
}

/// The error about a key of another type than a lock. No caller can lock it, and only its own program
/// knows what it is for, so it is neither listed nor released.
pub(super) fn not_a_lock(key: &LockKey) -> StoreError {
    StoreError::new(format!(
        "the key `{}` is not a lock: inspect it (`TYPE`), and delete it by hand",
        key.name()
    ))
}

/// Returns the command for the next page of the names that begin with `prefix`.
pub(super) fn scan(cursor: &[u8], prefix: &str) -> Cmd {
    let mut scan = redis::cmd("SCAN");
    scan.arg(cursor).arg("MATCH").arg(pattern(prefix)).arg("COUNT").arg(PAGE);
    scan
}

/// Returns the pattern that matches exactly the names that begin with `prefix`.
fn pattern(prefix: &str) -> String {
    let mut pattern = String::with_capacity(prefix.len() + 1);
    for letter in prefix.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '^' | '-' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('*');
    pattern
}

/// Reads the reply of `held_locks.lua` about these names.
pub(super) fn held(reply: &Value, names: &[String], prefix: &str) -> Option<Vec<HeldLock>> {
    let Value::Array(replies) = reply else { return None };
    let read = |reply: &Value| {
        let Value::Array(parts) = reply else { return None };
        let [
            Value::Int(nth),
            Value::BulkString(value),
            Value::Int(left),
            Value::Int(sharers),
            Value::Int(waiting),
        ] = parts.as_slice()
        else {
            return None;
        };
        let name = names.get(usize::try_from(*nth).ok()?.checked_sub(1)?)?;
        let mut held = HeldLock::new(name.strip_prefix(prefix)?, holder(value, *left));
        held.shared = *sharers > 0;
        held.holders = u32::try_from(*sharers).ok()?.max(1);
        held.waiting = u64::try_from(*waiting).ok()?;
        Some(held)
    };
    replies.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red without: the backslash in `pattern`.
    #[test]
    fn a_prefix_is_taken_by_the_letter() {
        assert_eq!(pattern("lock:"), "lock:*");
        assert_eq!(pattern("a*[b-c]?^\\"), "a\\*\\[b\\-c\\]\\?\\^\\\\*");
        assert_eq!(pattern(""), "*");
    }

    /// Red without: a check of any of the numbers.
    #[test]
    fn an_answer_about_other_locks_than_were_asked_for_makes_no_sense() {
        let names = ["lock:a".to_owned(), "lock:b".to_owned()];
        let reply = |numbers: [i64; 4]| {
            let [nth, left, sharers, waiting] = numbers.map(Value::Int);
            let value = Value::BulkString(b"0 service=x".to_vec());
            let one = Value::Array(vec![nth, value, left, sharers, waiting]);
            held(&Value::Array(vec![one]), &names, "lock:")
        };
        let read = reply([2, 500, 3, 4]).unwrap().remove(0);
        assert_eq!((read.key.as_str(), read.holders, read.shared), ("b", 3, true));
        assert_eq!((read.waiting, read.holder.service.as_deref()), (4, Some("x")));
        assert_eq!(reply([1, -1, 0, 0]).unwrap()[0].holder.remaining, None);
        for odd in [[0, 0, 0, 0], [3, 0, 0, 0], [-1, 0, 0, 0], [1, 0, -1, 0], [1, 0, 0, -1]] {
            assert_eq!(reply(odd), None, "{odd:?}");
        }
        assert_eq!(held(&Value::Nil, &names, "lock:"), None);
    }
}
