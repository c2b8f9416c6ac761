//! The state of the view, what keys do to it, and how it is drawn. No I/O, and no
//! clock.

use std::time::{Duration, SystemTime};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use lockattr::printable;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::summary::{self, grouped};
use crate::columns::{Cells, Columns};
use crate::pattern::Pattern;
use crate::row::Row;
use crate::sort::Sort;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Go,
    End,
}

pub(super) struct View {
    store: String,
    every: Duration,
    /// All held locks, in the order of the answer.
    all: Vec<Row>,
    /// The locks that pass the filter, sorted.
    shown: Vec<Row>,
    queried_at: SystemTime,
    /// Why the last query failed.
    error: Option<String>,
    sort: Sort,
    reversed: bool,
    filter: String,
    editing: bool,
    selected: usize,
    first: usize,
    /// The number of rows at the last draw.
    page: usize,
}

impl View {
    pub(super) fn new(store: String, every: Duration, sort: Sort) -> Self {
        Self {
            store,
            every,
            all: Vec::new(),
            shown: Vec::new(),
            queried_at: SystemTime::UNIX_EPOCH,
            error: None,
            sort,
            reversed: false,
            filter: String::new(),
            editing: false,
            selected: 0,
            first: 0,
            page: 1,
        }
    }

    pub(super) fn update(&mut self, rows: Vec<Row>, at: SystemTime) {
        (self.all, self.queried_at, self.error) = (rows, at, None);
        self.arrange();
    }

    /// Keeps the last answer on screen, with the error.
    pub(super) fn failed(&mut self, error: &str) {
        self.error = Some(printable(error).into_owned());
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Next {
        if key.kind == KeyEventKind::Release {
            return Next::Go;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => return Next::End,
            _ if self.editing => self.edit(key.code),
            KeyCode::Char('q') => return Next::End,
            KeyCode::Up | KeyCode::Char('k') => self.move_to(self.selected.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.move_to(self.selected + 1),
            KeyCode::PageUp => self.move_to(self.selected.saturating_sub(self.page)),
            KeyCode::PageDown | KeyCode::Char(' ') => self.move_to(self.selected + self.page),
            KeyCode::Home | KeyCode::Char('g') => self.move_to(0),
            KeyCode::End | KeyCode::Char('G') => self.move_to(usize::MAX),
            KeyCode::Char('s') => {
                self.sort = self.sort.next();
                self.rearrange();
            }
            KeyCode::Char('r') => {
                self.reversed = !self.reversed;
                self.rearrange();
            }
            KeyCode::Char('/') => self.editing = true,
            KeyCode::Esc => self.filter_by(String::new()),
            _ => {}
        }
        Next::Go
    }

    fn edit(&mut self, code: KeyCode) {
        let mut filter = self.filter.clone();
        match code {
            KeyCode::Enter => self.editing = false,
            KeyCode::Esc => {
                self.editing = false;
                filter.clear();
            }
            KeyCode::Backspace => {
                filter.pop();
            }
            KeyCode::Char(char) => filter.push(char),
            _ => {}
        }
        self.filter_by(filter);
    }

    fn filter_by(&mut self, filter: String) {
        if filter != self.filter {
            self.filter = filter;
            self.rearrange();
        }
    }

    /// Starts at the top, because a new order is read from there.
    fn rearrange(&mut self) {
        self.selected = 0;
        self.arrange();
    }

    /// Keeps the selected lock selected, wherever it is now; at the top, the first row stays
    /// selected.
    fn arrange(&mut self) {
        let selected = self.shown.get(self.selected).filter(|_| self.selected > 0);
        let selected = selected.map(|row| row.key.clone());
        let filter = Pattern::new(&self.filter);
        self.shown = self.all.iter().filter(|row| filter.matches(&row.key)).cloned().collect();
        self.sort.apply(&mut self.shown);
        if self.reversed {
            self.shown.reverse();
        }
        let index = selected.and_then(|key| self.shown.iter().position(|row| row.key == key));
        self.move_to(index.unwrap_or(self.selected));
    }

    fn move_to(&mut self, index: usize) {
        self.selected = index.min(self.shown.len().saturating_sub(1));
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let areas = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(1),
            Constraint::Min(0),
            Constraint::Length(1),
        ]);
        let [top, head, table, foot] = areas.areas(frame.area());
        self.page = usize::from(table.height).max(1);
        self.scroll();
        frame.render_widget(Paragraph::new(self.top()), top);
        self.draw_table(frame, head, table);
        frame.render_widget(Paragraph::new(self.foot()), foot);
    }

    /// Scrolls so that the selected row is visible and no row below the last is empty.
    fn scroll(&mut self) {
        let last = self.shown.len().saturating_sub(self.page);
        self.first = self.first.clamp(self.selected.saturating_sub(self.page - 1), self.selected);
        self.first = self.first.min(last);
    }

    fn top(&self) -> Vec<Line<'_>> {
        let counts = summary::what(&self.all, self.queried_at);
        let mut status = vec![summary::who(&self.all).into(), " · sorted by ".into()];
        status.push(Span::raw(self.sort.name()).bold());
        if self.reversed {
            status.push(", reversed".into());
        }
        status.push(format!(" · every {}", humantime::format_duration(self.every)).into());
        if !self.filter.is_empty() {
            let count = grouped(self.shown.len());
            status.push(format!(" · {count} with ").into());
            status.push(Span::raw(&self.filter).bold());
        }
        if let Some(error) = &self.error {
            status = vec![Span::raw(error).red()];
        }
        vec![
            Line::from(vec![Span::raw(&self.store).bold(), "  ".into(), counts.into()]),
            Line::from(status),
        ]
    }

    fn draw_table(&self, frame: &mut Frame<'_>, head: Rect, table: Rect) {
        let in_sight = self.shown.iter().skip(self.first).take(self.page);
        let cells: Vec<_> = in_sight.map(|row| Cells::new(row, self.queried_at)).collect();
        let columns = Columns::fit(&cells, Some(usize::from(table.width)));
        frame.render_widget(Paragraph::new(columns.head()).reversed(), head);
        let lines = cells.iter().enumerate().map(|(index, cells)| {
            let style = if self.first + index == self.selected {
                Style::new().on_dark_gray().white()
            } else {
                Style::new()
            };
            // To the edge, or the highlight of the selected row would end with its text.
            let width = usize::from(table.width);
            Line::styled(format!("{:<width$}", columns.line(cells)), style)
        });
        frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), table);
    }

    fn foot(&self) -> Line<'_> {
        if self.editing {
            return Line::from(vec!["/".into(), Span::raw(&self.filter).bold(), "█".into()]);
        }
        let position = if self.shown.is_empty() { 0 } else { self.selected + 1 };
        let position = format!("{} of {}", grouped(position), grouped(self.shown.len()));
        let keys = " · q end · ↑↓ PgUp PgDn move · s sort · r reverse · / filter";
        Line::from(vec![Span::raw(position).bold(), keys.into()])
    }
}

#[cfg(test)]
mod tests;
