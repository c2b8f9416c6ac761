//! The invariant: a lock that has waiters is never absent, and lives at least as long as its queue.

use super::mistake::Mistake;
use super::server::Form;
use super::setting::Setting;
use super::world::World;

impl Setting {
    /// The last thing a script does to each key that it has changed: marks a lock that has waiters,
    /// or removes the mark of one that has none.
    pub(crate) fn secure(&self, world: &mut World, key: usize) {
        let it = &mut world.server.keys[key];
        if it.queue.is_empty() {
            unmark(world, key);
            return;
        }
        let prolongs = !self.makes(Mistake::RecheckProlongsNothing) || it.queue_ends == 0;
        if prolongs {
            it.queue_ends = self.kept;
        }
        let kept = it.queue_ends;
        let lives = |lease: u8| match self.mistake {
            Some(Mistake::MarkEndsWithLease) if lease > 0 => lease,
            Some(Mistake::MarkEndsWithQueue) => kept,
            _ => lease.max(kept),
        };
        match it.form {
            // Another program's value must stay as written, so that its own compare-and-delete
            // finds it.
            Form::Foreign => it.disturbed = true,
            Form::Absent if self.makes(Mistake::ReservesNothing) => {}
            Form::Plain | Form::Absent if self.makes(Mistake::MarksNothing) => {}
            Form::Absent => it.write(Form::Marked, 0, 0, kept),
            Form::Plain => it.write(Form::Marked, it.owner, it.expires, lives(it.expires)),
            Form::Marked => {
                let owner = if it.until > 0 { it.owner } else { 0 };
                it.write(Form::Marked, owner, it.until, lives(it.until));
            }
            Form::Set if self.makes(Mistake::SetForgetsQueue) => {}
            Form::Set => it.expires = it.last_lease().max(kept),
        }
        it.disturbed &= !matches!(it.form, Form::Marked | Form::Set);
    }

    pub(crate) fn secure_all(&self, world: &mut World, keys: &[usize]) {
        keys.iter().for_each(|&key| self.secure(world, key));
    }
}

/// Restores a lock that has no waiters: to its owner's value, or to absent.
pub(crate) fn unmark(world: &mut World, key: usize) {
    let it = &mut world.server.keys[key];
    match (it.form, it.owner) {
        (Form::Marked, 0) => it.vanish(),
        (Form::Marked, owner) => it.write(Form::Plain, owner, 0, it.until),
        (Form::Set, _) => {
            it.expires = it.last_lease();
            if it.expires == 0 {
                it.vanish();
            }
        }
        _ => {}
    }
}
