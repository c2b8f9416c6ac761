//! Hashes a state in few words, and prints it for people.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::world::{Reply, World};
use crate::claims::{CLAIMS, Phase};

/// Few words, because a search hashes each state once for each path to it.
impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for key in &self.keys {
            let ([a, b, c], ([d, e, f], _)) = (key.leases, key.queue.words());
            state.write_u64(u64::from_le_bytes([a, b, c, d, e, f, key.issued, key.issued_alone]));
        }
        for it in &self.claims {
            let phase = it.phase as u8 + 8 * (it.process as u8);
            let flags = [it.cut, it.entered, it.unsure, it.request, it.late, it.robbed];
            let flags = flags.iter().fold(0, |bits, &flag| 2 * bits + u8::from(flag));
            let reply = match it.reply {
                Reply::None => 0,
                Reply::Refused => 1,
                Reply::Granted(token) => token + 2,
            };
            let notice = it.notice.map_or(0, |notice| 1 + 2 * notice.token + u8::from(notice.old));
            let left = it.notice.map_or(0, |notice| notice.left);
            let ends = it.timer + 4 * it.valid + 32 * left;
            let entry = it.record + 16 * it.alive;
            state.write_u64(u64::from_le_bytes([phase, flags, reply, notice, ends, entry, 0, 0]));
        }
        let [[a, b, c], [d, e, f]] = self.keys.each_ref().map(|key| key.queue.words().1);
        state.write_u64(u64::from_le_bytes([a, b, c, d, e, f, self.counter, self.faults]));
    }
}

/// Prints each key with its leases and its queue, and then each claim.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, name) in self.keys.iter().zip(['a', 'b']) {
            if key.leases != [0; CLAIMS] || !key.queue.is_empty() {
                write!(f, "{name}:")?;
                for (claim, left) in key.leases.iter().enumerate().filter(|(_, left)| **left > 0) {
                    write!(f, " {}/{left}", claim + 1)?;
                }
                let queue = key.queue.claims().map(|claim| claim + 1);
                write!(f, " queue {:?}  ", queue.collect::<Vec<_>>())?;
            }
        }
        for (index, claim) in self.claims.iter().enumerate() {
            if claim.phase != Phase::New {
                write!(f, "{}={:?}", index + 1, claim.phase)?;
                match claim.phase {
                    Phase::Holding => write!(f, "/{}", claim.valid)?,
                    _ if claim.record > 0 => write!(f, " entry/{}", claim.record)?,
                    _ => {}
                }
                write!(f, "  ")?;
            }
        }
        Ok(())
    }
}
