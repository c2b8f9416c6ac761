//! Detects a server that the URL names twice, under two names: it would have two votes.

use crate::platform::sync::Mutex;
use std::sync::Arc;

/// The server found behind each name of a quorum.
#[derive(Debug)]
pub(in crate::engines) struct Members(Mutex<Vec<Seen>>);

/// What the last connection to one of the names found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    /// A server, by its `run_id`, which it draws when it starts.
    Run(String),
    /// A server that another name leads to as well.
    Twice,
}

/// One of the names.
#[derive(Clone, Debug)]
pub(in crate::engines) struct Member {
    members: Arc<Members>,
    nth: usize,
}

impl Members {
    pub(super) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(vec![Seen::Nothing; count])))
    }

    pub(super) fn nth(self: &Arc<Self>, nth: usize) -> Member {
        Member { members: self.clone(), nth }
    }

    /// Whether two names are known to lead to the same server.
    pub(super) fn has_one_twice(&self) -> bool {
        self.0.lock().contains(&Seen::Twice)
    }
}

impl Member {
    /// Notes that the name leads to the server with this `run_id`, or to one that does not report
    /// any. Returns `false` if another name leads there already.
    pub(in crate::engines) fn leads_to(&self, run_id: Option<&str>) -> bool {
        let mut seen = self.members.0.lock();
        let run = run_id.map(str::to_owned).map_or(Seen::Nothing, Seen::Run);
        let others = seen.iter().enumerate().filter(|(nth, _)| *nth != self.nth);
        let is_twice = run != Seen::Nothing && others.into_iter().any(|(_, other)| *other == run);
        seen[self.nth] = if is_twice { Seen::Twice } else { run };
        !is_twice
    }
}

#[cfg(test)]
mod tests {
    use super::Members;

    /// Red without: the comparison with the other names, or the note of this one.
    #[test]
    fn a_server_has_one_name_at_a_time() {
        let members = Members::new(3);
        let [first, second, third] = [0, 1, 2].map(|nth| members.nth(nth));
        assert!(first.leads_to(Some("a")) && first.leads_to(Some("a")));
        assert!(!second.leads_to(Some("a")) && members.has_one_twice());
        // Names move: the first now leads to another server, so the second may lead to this one.
        assert!(first.leads_to(Some("b")) && second.leads_to(Some("a")));
        assert!(!members.has_one_twice());
        // Servers that report no `run_id` count as different.
        assert!(second.leads_to(None) && third.leads_to(None));
    }
}
