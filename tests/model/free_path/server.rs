//! The state of a server, per key.
//!
//! There is no time of day: whatever expires is stored as the number of ticks until then.

use crate::claims::names::name;
use crate::claims::queue::Queue;
use crate::claims::{CLAIMS, KEYS, pass};

/// The expiry of a key without a TTL.
pub(crate) const NEVER: u8 = u8::MAX;

/// A server, or its replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) keys: [Key; KEYS],
    /// The ticks until each claim's entries lapse.
    pub(crate) records: [u8; CLAIMS],
    /// The fencing counters; 0 means absent. A server uses only the first, a cluster one for each
    /// slot.
    pub(crate) counters: [u8; KEYS],
}

/// The kind of value under a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    #[default]
    Absent,
    /// The value of one claim: the key ends with the lease.
    Plain,
    /// A mark, which contains the end of the lease. Without an owner it is a reservation.
    Marked,
    /// The claims that share the lock, with the end of each lease.
    Set,
    /// The value of another program.
    Foreign,
}

/// A lock and its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) form: Form,
    /// The name of a claim.
    pub(crate) owner: u8,
    /// The end of the lease in a mark.
    pub(crate) until: u8,
    /// The leases of the claims that share the lock.
    pub(crate) leases: [u8; CLAIMS],
    /// When the key itself ends.
    pub(crate) expires: u8,
    pub(crate) queue: Queue,
    /// When the queue ends.
    pub(crate) queue_ends: u8,
    /// Another program has or had the lock, or deleted it. No order is promised until the lock is
    /// marked again.
    pub(crate) disturbed: bool,
}

impl Key {
    /// Removes the claim from the queue.
    pub(crate) fn remove(&mut self, claim: usize) {
        self.queue.remove(claim);
        self.tidy();
    }

    /// Deletes the key.
    pub(crate) fn vanish(&mut self) {
        self.write(Form::Absent, 0, 0, 0);
    }

    /// Writes a string of this form, with its owner, the end of the lease (in a mark), and the
    /// key's expiry.
    pub(crate) fn write(&mut self, form: Form, owner: u8, until: u8, expires: u8) {
        self.form = if expires == 0 { Form::Absent } else { form };
        (self.owner, self.until, self.expires) = (owner, until, expires);
        self.leases = [0; CLAIMS];
        if self.form == Form::Absent {
            (self.owner, self.until) = (0, 0);
        }
    }

    /// How long the claim still has the lock.
    pub(crate) fn lease(&self, claim: usize) -> u8 {
        match self.form {
            Form::Plain if self.owner == name(claim) => self.expires,
            Form::Marked if self.owner == name(claim) => self.until,
            Form::Set => self.leases[claim],
            _ => 0,
        }
    }

    /// The end of the last shared lease.
    pub(crate) fn last_lease(&self) -> u8 {
        self.leases.into_iter().max().unwrap_or(0)
    }

    pub(crate) fn tick(&mut self) {
        self.leases.iter_mut().for_each(pass);
        self.queue.tick();
        pass(&mut self.until);
        pass(&mut self.queue_ends);
        if self.expires != NEVER {
            pass(&mut self.expires);
        }
        if self.expires == 0 {
            self.vanish();
        }
        if self.queue_ends == 0 {
            self.queue = Queue::default();
        }
        self.tidy();
    }

    /// An empty queue does not exist.
    fn tidy(&mut self) {
        if self.queue.is_empty() {
            (self.queue_ends, self.disturbed) = (0, false);
        }
    }
}
