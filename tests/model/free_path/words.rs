//! Hashes a state in few words, and prints it for people.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::server::{Form, Key, Server};
use super::world::{Claim, Grant, Message, RenewRequest, Set, World};
use crate::claims::{Phase, Process};

/// Few words, because a search hashes each state once for each path to it. Two states may collide.
impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_server(&self.server, state);
        if self.replica != Server::default() {
            hash_server(&self.replica, state);
        }
        for (it, link) in self.claims.iter().zip(&self.links) {
            let flags = [it.entered, it.unsure, it.lean, it.late_script, it.robbed, it.passed];
            let [raised, also_raised] = link.raised;
            let of_link = [link.cut, raised];
            let flags =
                flags.iter().chain(&of_link).fold(0, |bits, &flag| 2 * bits + u8::from(flag));
            let phase = it.phase as u8
                + 8 * (link.process as u8)
                + 32 * it.late_pair
                + 128 * u8::from(also_raised);
            let (message, token) = words_of(it);
            let notice = it.notice.map_or(0, |notice| 1 + 2 * notice.left + u8::from(notice.old));
            let renewal = match it.renewal {
                RenewRequest::None => 0,
                RenewRequest::Sent(ticks) => ticks,
                RenewRequest::Renewed { replicated } => 16 + u8::from(replicated),
                RenewRequest::Lost => 18,
            };
            let ends = it.timer + 16 * it.valid;
            let left = it.alive + 16 * it.renewed;
            state.write_u64(u64::from_le_bytes([
                phase, flags, message, token, notice, renewal, ends, left,
            ]));
            let counts = it.renewals + 16 * it.hand_offs;
            let token = it.notice.map_or(0, |notice| notice.token);
            let [seen, also_seen] = link.seen;
            let words = [it.seen, seen, also_seen, counts, token, 0, 0, 0];
            state.write_u64(u64::from_le_bytes(words));
        }
        let ([a, b], [c, d], [e, f]) = (self.clocks, self.top, self.top_alone);
        state.write_u64(u64::from_le_bytes([a, b, c, d, e, f, self.faults, self.intruder]));
    }
}

fn hash_server<H: Hasher>(server: &Server, state: &mut H) {
    for key in &server.keys {
        if *key == Key::default() {
            continue;
        }
        let ([a, b, c], ([d, e, f], [g, h, i])) = (key.leases, key.queue.words());
        let form = key.form as u8 + 8 * u8::from(key.disturbed) + 16 * key.owner;
        state.write_u64(u64::from_le_bytes([a, b, c, d, e, f, form, key.until]));
        state.write_u64(u64::from_le_bytes([g, h, i, key.expires, key.queue_ends, 0, 0, 0]));
    }
    let [a, b, c] = server.records;
    let [counter, other] = server.counters;
    state.write_u64(u64::from_le_bytes([a, b, c, counter, other, 0, 0, 0]));
}

fn words_of(it: &Claim) -> (u8, u8) {
    let of = |grant: Grant| {
        let flags = [grant.stale, grant.bare, grant.old, grant.replicated];
        flags.iter().fold(0, |bits, &flag| 2 * bits + u8::from(flag))
    };
    match it.message {
        Message::None => (0, 0),
        Message::Pair => (1, 0),
        Message::Half(Set::Done) => (2, 0),
        Message::Half(Set::Refused) => (3, 0),
        Message::Half(Set::Redirected) => (4, 0),
        Message::Void { error } => (5 + u8::from(error), 0),
        Message::Script => (7, 0),
        Message::Refused => (8, 0),
        Message::Again(grant) => (9, grant.token),
        Message::Granted(grant) => (16 + of(grant), grant.token),
    }
}

/// Prints each key with its form, its leases and its queue, and then each claim.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_server(f, &self.server)?;
        if self.replica != Server::default() {
            write!(f, "replica ")?;
            write_server(f, &self.replica)?;
        }
        for (index, (claim, link)) in self.claims.iter().zip(&self.links).enumerate() {
            if claim.phase != Phase::New {
                write!(f, "{}={:?}", index + 1, claim.phase)?;
                match claim.phase {
                    Phase::Holding => write!(f, "/{}", claim.valid)?,
                    Phase::Requested => write!(f, " {:?}", claim.message)?,
                    _ => {}
                }
                write!(f, "  ")?;
            }
            if link.process != Process::Runs {
                write!(f, "({:?})  ", link.process)?;
            }
        }
        Ok(())
    }
}

fn write_server(f: &mut fmt::Formatter<'_>, server: &Server) -> fmt::Result {
    for (key, name) in server.keys.iter().zip(['a', 'b']) {
        if key.form == Form::Absent && key.queue.is_empty() {
            continue;
        }
        write!(f, "{name}: {:?}", key.form)?;
        match key.form {
            Form::Plain => write!(f, " {}", key.owner)?,
            Form::Marked => write!(f, " {} until {}", key.owner, key.until)?,
            Form::Set => write!(f, " {:?}", key.leases)?,
            _ => {}
        }
        write!(f, " /{}", key.expires)?;
        if !key.queue.is_empty() {
            let queue = key.queue.claims().map(|claim| claim + 1).collect::<Vec<_>>();
            write!(f, " queue {queue:?}/{}", key.queue_ends)?;
        }
        write!(f, "  ")?;
    }
    write!(f, "#{}", server.counters[0])?;
    if server.counters[1] > 0 {
        write!(f, " #{}", server.counters[1])?;
    }
    write!(f, "  ")
}
