//! Rows as lines of a table: the width of each column, and what is cut if there is no room.

use std::time::SystemTime;

use lockattr::printable;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::row::Row;
use crate::span::{age, brief, end};

const COUNT: usize = 7;
const GAP: usize = 2;
const KEY: usize = 0;
const HOLDER: usize = 1;
const FUNCTION: usize = 2;
/// From this column on numbers, right-aligned.
const AGE: usize = 3;
const WAITING: usize = 5;
const FENCE: usize = 6;
const HEADS: [&str; COUNT] = ["KEY", "HOLDER", "FUNCTION", "AGE", "REMAINING", "WAITING", "FENCE"];
/// The text of an unknown value.
const UNKNOWN: &str = "-";
/// The columns to cut first if a line is too long, with their least widths.
const SHRINK: [(usize, usize); 3] = [(FUNCTION, 12), (HOLDER, 20), (KEY, 16)];
/// The columns to leave out if that is not enough.
const LEAVE_OUT: [usize; 5] = [FUNCTION, FENCE, AGE, HOLDER, WAITING];

pub(crate) struct Cells([String; COUNT]);

impl Cells {
    pub(crate) fn new(row: &Row, now: SystemTime) -> Self {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.into());
        let mut holder = row.holder.brief();
        if row.holders > 1 {
            holder.push_str(&format!(" (+{})", row.holders - 1));
        }
        let cells = [
            row.key.clone(),
            holder,
            or_dash(row.holder.function.clone()),
            or_dash(row.since.and_then(|since| age(since, now)).map(brief)),
            remaining(row, now),
            row.waiting.to_string(),
            or_dash(row.fencing_token.map(|token| token.to_string())),
        ];
        // Before the widths are counted.
        Self(cells.map(|cell| printable(&cell).into_owned()))
    }
}

/// How long the lease lasts, or until when the key is done.
fn remaining(row: &Row, now: SystemTime) -> String {
    let Some(remaining) = row.remaining else {
        return if row.done { "done" } else { "forever" }.into();
    };
    match (row.done, end(now, remaining)) {
        (false, _) => brief(remaining),
        (true, Some(end)) => format!("done until {end}"),
        (true, None) => "done".into(),
    }
}

pub(crate) struct Columns([Option<usize>; COUNT]);

impl Columns {
    /// As wide as the longest text of each column, but together no wider than `width`, if any.
    pub(crate) fn fit(rows: &[Cells], width: Option<usize>) -> Self {
        let mut widths = HEADS.map(|head| Some(head.len()));
        for Cells(cells) in rows {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(Some(cell.width()));
            }
        }
        // Some stores keep no fencing token with the lock.
        if rows.iter().all(|Cells(cells)| cells[FENCE] == UNKNOWN) {
            widths[FENCE] = None;
        }
        let mut columns = Self(widths);
        let Some(width) = width else { return columns };
        for (column, min) in SHRINK {
            let over = columns.total().saturating_sub(width);
            if let Some(wide) = &mut columns.0[column] {
                *wide = (*wide).min(min.max(wide.saturating_sub(over)));
            }
        }
        for column in LEAVE_OUT {
            if columns.total() > width {
                columns.0[column] = None;
            }
        }
        // The freed width goes to the key.
        let free = width.saturating_sub(columns.total());
        let longest = rows.iter().map(|Cells(cells)| cells[KEY].width()).max().unwrap_or_default();
        columns.0[KEY] = columns.0[KEY].map(|wide| wide.max(longest.min(wide + free)));
        columns
    }

    pub(crate) fn head(&self) -> String {
        self.joined(HEADS.map(str::to_owned))
    }

    pub(crate) fn line(&self, Cells(cells): &Cells) -> String {
        self.joined(cells.clone())
    }

    fn total(&self) -> usize {
        let shown = self.0.iter().flatten();
        shown.clone().sum::<usize>() + shown.count().saturating_sub(1) * GAP
    }

    fn joined(&self, cells: [String; COUNT]) -> String {
        let mut line = String::new();
        for (column, (cell, wide)) in cells.into_iter().zip(self.0).enumerate() {
            let Some(wide) = wide else { continue };
            if !line.is_empty() {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = cut(&cell, wide, column);
            let space = " ".repeat(wide.saturating_sub(cell.width()));
            let (before, after) =
                if column >= AGE { (space.as_str(), "") } else { ("", space.as_str()) };
            line.extend([before, &cell, after]);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Cuts a text that is too long, and keeps its distinctive part: the name of a function, both ends
/// of other texts.
fn cut(text: &str, wide: usize, column: usize) -> String {
    if text.width() <= wide {
        return text.to_owned();
    }
    let room = wide.saturating_sub(1);
    let (head, tail) = match column {
        FUNCTION => (0, room),
        _ => (room - room / 2, room / 2),
    };
    let tail: String = fitting(text.chars().rev(), tail).chars().rev().collect();
    [&fitting(text.chars(), head), "…", &tail].concat()
}

/// As many characters as fit.
fn fitting(chars: impl Iterator<Item = char>, room: usize) -> String {
    let mut remaining = room;
    chars
        .take_while(|char| {
            let wide = char.width().unwrap_or_default();
            let fits = wide <= remaining;
            remaining = remaining.saturating_sub(wide);
            fits
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::row::sample;

    fn rows() -> Vec<Cells> {
        let mut rows = [
            sample("nightly", "since=0 service=reports host=batch-1 pid=9 function=report.sh"),
            sample(
                "product:0190c8a2-5a43-7d11-9e4e-6f2a8bb9f042",
                "since=60000 service=inventory host=web-3.example.org pid=1234567 \
                 function=inventory::stock::deduct",
            ),
            sample("a\u{1b}[2Jb", ""),
            sample("库存:42", "service=x"),
        ];
        (rows[0].waiting, rows[0].fencing_token, rows[0].holders) = (12, Some(u64::MAX >> 1), 3);
        rows[2].remaining = None;
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(192);
        rows.iter().map(|row| Cells::new(row, now)).collect()
    }

    #[track_caller]
    fn check(width: Option<usize>, expected: &Expect) {
        let rows = rows();
        let columns = Columns::fit(&rows, width);
        let mut table = columns.head() + "\n";
        for row in &rows {
            table += &(columns.line(row) + "\n");
        }
        expected.assert_eq(&table);
        if let Some(width) = width {
            assert!(table.lines().all(|line| line.width() <= width), "wider than {width}");
        }
    }

    #[test]
    fn a_pipe_gets_every_column_whole() {
        check(
            None,
            &expect![[r#"
            KEY                                           HOLDER                               FUNCTION                    AGE  REMAINING  WAITING                FENCE
            nightly                                       reports@batch-1:9 (+2)               report.sh                 3m12s       8.2s       12  9223372036854775807
            product:0190c8a2-5a43-7d11-9e4e-6f2a8bb9f042  inventory@web-3.example.org:1234567  inventory::stock::deduct  2m12s       8.2s        0                    -
            a�[2Jb                                        -                                    -                             -    forever        0                    -
            库存:42                                       x                                    -                             -       8.2s        0                    -
        "#]],
        );
    }

    #[test]
    fn a_terminal_gets_what_fits() {
        check(
            Some(120),
            &expect![[r#"
            KEY                                   HOLDER                FUNCTION        AGE  REMAINING  WAITING                FENCE
            nightly                               reports@ba…-1:9 (+2)  report.sh     3m12s       8.2s       12  9223372036854775807
            product:0190c8a2-5…9e4e-6f2a8bb9f042  inventory@…g:1234567  …ock::deduct  2m12s       8.2s        0                    -
            a�[2Jb                                -                     -                 -    forever        0                    -
            库存:42                               x                     -                 -       8.2s        0                    -
        "#]],
        );
        check(
            Some(80),
            &expect![[r#"
            KEY                              HOLDER                  AGE  REMAINING  WAITING
            nightly                          reports@ba…-1:9 (+2)  3m12s       8.2s       12
            product:0190c8a…4e-6f2a8bb9f042  inventory@…g:1234567  2m12s       8.2s        0
            a�[2Jb                           -                         -    forever        0
            库存:42                          x                         -       8.2s        0
        "#]],
        );
        check(
            Some(40),
            &expect![[r#"
            KEY                   REMAINING  WAITING
            nightly                    8.2s       12
            product:01…a8bb9f042       8.2s        0
            a�[2Jb                  forever        0
            库存:42                    8.2s        0
        "#]],
        );
    }

    /// Red without: the check of the tokens in `fit`.
    #[test]
    fn a_column_without_a_fencing_token_is_left_out() {
        let mut rows = rows();
        rows.remove(0);
        for width in [None, Some(120)] {
            assert!(!Columns::fit(&rows, width).head().contains("FENCE"), "{width:?}");
        }
    }

    /// Red without: the arms of `remaining`.
    #[test]
    fn a_done_key_shows_until_when() {
        let mut rows = [
            sample("nightly", "service=reports host=batch-1 pid=9 done=1"),
            sample("weekly", "service=reports host=batch-1 pid=9 done=1"),
            sample("once", "service=reports done=1"),
            sample("held", "service=reports"),
        ];
        rows[0].remaining = Some(Duration::from_secs(3_600));
        rows[1].remaining = Some(Duration::from_secs(6 * 86_400));
        rows[2].remaining = None;
        let now = SystemTime::UNIX_EPOCH;
        let cells: Vec<_> = rows.iter().map(|row| Cells::new(row, now)).collect();
        let columns = Columns::fit(&cells, Some(80));
        let lines: Vec<_> = cells.iter().map(|row| columns.line(row)).collect();
        expect![[r#"
            nightly  reports@batch-1:9  -           -        done until 01:00Z        0
            weekly   reports@batch-1:9  -           -  done until 01-07T00:00Z        0
            once     reports            -           -                     done        0
            held     reports            -           -                     8.2s        0
        "#]]
        .assert_eq(&(lines.join("\n") + "\n"));
    }

    #[test]
    fn no_width_is_too_small() {
        let rows = rows();
        for width in 0..200 {
            let columns = Columns::fit(&rows, Some(width));
            assert!(rows.iter().all(|row| !columns.line(row).is_empty()));
        }
    }
}
