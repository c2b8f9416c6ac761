//! Which server is the master, as far as the sentinels' replies tell. No I/O.

/// A sentinel's report of the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MasterReport {
    /// Grows with each failover.
    pub(super) epoch: u64,
    pub(super) host: String,
    pub(super) port: u16,
    /// The number of the query.
    pub(super) query: u64,
}

impl MasterReport {
    pub(super) fn address(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Returns the true one of several replies to one query: every failover has a higher epoch than
    /// all before, and needs a majority of the sentinels.
    pub(super) fn newest(reports: impl IntoIterator<Item = Self>) -> Option<Self> {
        reports.into_iter().max_by_key(|report| report.epoch)
    }

    /// Returns what is known after `report`, or `None` if the report is out of date. A minority
    /// that knows less than before is cut off from the others; a majority that does was set up
    /// anew.
    pub(super) fn after(known: Option<&Self>, report: Self, is_majority: bool) -> Option<Self> {
        let Some(known) = known else { return Some(report) };
        if report.epoch < known.epoch && !is_majority {
            return None;
        }
        // Replies to an earlier query may come later; they count if they know more.
        let later = report.epoch > known.epoch || report.query > known.query;
        Some(if later { report } else { known.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::MasterReport;

    fn report(epoch: u64, query: u64) -> MasterReport {
        MasterReport { epoch, host: format!("epoch-{epoch}"), port: 6379, query }
    }

    #[test]
    fn the_last_failover_is_believed_however_many_have_not_heard_of_it() {
        let reports = [report(3, 1), report(4, 1), report(3, 1)];
        assert_eq!(MasterReport::newest(reports), Some(report(4, 1)));
        assert_eq!(MasterReport::newest([]), None);
    }

    #[test]
    fn a_minority_that_knows_less_is_not_believed() {
        let known = report(4, 1);
        assert_eq!(MasterReport::after(Some(&known), report(3, 2), false), None);
        assert_eq!(MasterReport::after(Some(&known), report(4, 2), false), Some(report(4, 2)));
        assert_eq!(MasterReport::after(Some(&known), report(5, 2), false), Some(report(5, 2)));
        assert_eq!(MasterReport::after(None, report(3, 2), false), Some(report(3, 2)));
    }

    #[test]
    fn sentinels_that_were_set_up_anew_are_believed() {
        assert_eq!(
            MasterReport::after(Some(&report(4, 1)), report(0, 2), true),
            Some(report(0, 2))
        );
    }

    #[test]
    fn an_old_question_that_is_answered_late_changes_nothing_unless_it_brings_a_failover() {
        let known = report(4, 7);
        assert_eq!(MasterReport::after(Some(&known), report(4, 6), true), Some(known.clone()));
        assert_eq!(MasterReport::after(Some(&known), report(3, 6), true), Some(known.clone()));
        assert_eq!(MasterReport::after(Some(&known), report(5, 6), true), Some(report(5, 6)));
    }

    #[test]
    fn an_address_of_version_six_is_written_in_brackets() {
        let report = MasterReport { host: "::1".into(), ..report(1, 1) };
        assert_eq!(report.address(), "[::1]:6379");
    }
}
