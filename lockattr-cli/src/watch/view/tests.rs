//! The view, drawn into memory.

use expect_test::{Expect, expect};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::row::sample;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn view(keys: usize) -> View {
    let mut view = View::new("redis://db".into(), Duration::from_secs(1), Sort::Key);
    let label = |number: usize| format!("since={} service=s host=h pid={number}", number * 1000);
    let rows = (1..=keys).map(|number| sample(&format!("key:{number:05}"), &label(number)));
    view.update(rows.collect(), at(20_000));
    view
}

fn press(view: &mut View, codes: impl IntoIterator<Item = KeyCode>) {
    for code in codes {
        assert_eq!(view.key(KeyEvent::from(code)), Next::Go);
    }
}

fn drawn(view: &mut View) -> String {
    let mut terminal = Terminal::new(TestBackend::new(80, 9)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    let screen = terminal.backend().to_string();
    let lines = screen.lines().map(|line| line.trim_matches('"').trim_end());
    lines.map(|line| format!("{line}\n")).collect()
}

#[track_caller]
fn check(view: &mut View, expected: &Expect) {
    expected.assert_eq(&drawn(view));
}

#[test]
fn counts_stand_on_top_and_a_page_of_the_table_below() {
    check(
        &mut view(10_000),
        &expect![[r#"
            redis://db  10,000 held · 0 waiting · longest for 5h33m
            by 10,000 processes, 1 service, 1 host · sorted by key · every 1s
            KEY        HOLDER  FUNCTION    AGE  REMAINING  WAITING
            key:00001  s@h:1   -         5h33m       8.2s        0
            key:00002  s@h:2   -         5h33m       8.2s        0
            key:00003  s@h:3   -         5h33m       8.2s        0
            key:00004  s@h:4   -         5h33m       8.2s        0
            key:00005  s@h:5   -         5h33m       8.2s        0
            1 of 10,000 · q end · ↑↓ PgUp PgDn move · s sort · r reverse · / filter
        "#]],
    );
}

#[test]
fn keys_move_sort_and_filter() {
    let mut view = view(10_000);
    drawn(&mut view);
    press(&mut view, [KeyCode::PageDown, KeyCode::Down, KeyCode::Down]);
    check(
        &mut view,
        &expect![[r#"
            redis://db  10,000 held · 0 waiting · longest for 5h33m
            by 10,000 processes, 1 service, 1 host · sorted by key · every 1s
            KEY        HOLDER  FUNCTION    AGE  REMAINING  WAITING
            key:00004  s@h:4   -         5h33m       8.2s        0
            key:00005  s@h:5   -         5h33m       8.2s        0
            key:00006  s@h:6   -         5h33m       8.2s        0
            key:00007  s@h:7   -         5h33m       8.2s        0
            key:00008  s@h:8   -         5h33m       8.2s        0
            8 of 10,000 · q end · ↑↓ PgUp PgDn move · s sort · r reverse · / filter
        "#]],
    );
    press(&mut view, [KeyCode::End, KeyCode::Char('r')]);
    check(
        &mut view,
        &expect![[r#"
            redis://db  10,000 held · 0 waiting · longest for 5h33m
            by 10,000 processes, 1 service, 1 host · sorted by key, reversed · every 1s
            KEY        HOLDER     FUNCTION    AGE  REMAINING  WAITING
            key:10000  s@h:10000  -         2h46m       8.2s        0
            key:09999  s@h:9999   -         2h46m       8.2s        0
            key:09998  s@h:9998   -         2h46m       8.2s        0
            key:09997  s@h:9997   -         2h46m       8.2s        0
            key:09996  s@h:9996   -         2h46m       8.2s        0
            1 of 10,000 · q end · ↑↓ PgUp PgDn move · s sort · r reverse · / filter
        "#]],
    );
    press(&mut view, "/99?7".chars().map(KeyCode::Char));
    check(
        &mut view,
        &expect![[r#"
            redis://db  10,000 held · 0 waiting · longest for 5h33m
            by 10,000 processes, 1 service, 1 host · sorted by key, reversed · every 1s · 0
            KEY  HOLDER  FUNCTION  AGE  REMAINING  WAITING





            /99?7█
        "#]],
    );
    press(&mut view, [KeyCode::Backspace; 4]);
    press(&mut view, "*:0999?".chars().map(KeyCode::Char));
    press(&mut view, [KeyCode::Enter, KeyCode::Char('s')]);
    check(
        &mut view,
        &expect![[r#"
            redis://db  10,000 held · 0 waiting · longest for 5h33m
            by 10,000 processes, 1 service, 1 host · sorted by holder, reversed · every 1s ·
            KEY        HOLDER    FUNCTION    AGE  REMAINING  WAITING
            key:09999  s@h:9999  -         2h46m       8.2s        0
            key:09998  s@h:9998  -         2h46m       8.2s        0
            key:09997  s@h:9997  -         2h46m       8.2s        0
            key:09996  s@h:9996  -         2h46m       8.2s        0
            key:09995  s@h:9995  -         2h46m       8.2s        0
            1 of 10 · q end · ↑↓ PgUp PgDn move · s sort · r reverse · / filter
        "#]],
    );
}

/// Red without: the search for its key in `arrange`.
#[test]
fn the_selected_lock_stays_selected_when_others_come_and_go() {
    let mut view = view(100);
    press(&mut view, [KeyCode::Down; 50]);
    let mut rows = view.all.clone();
    rows.drain(..10);
    view.update(rows, at(20_001));
    assert_eq!(view.shown[view.selected].key, "key:00051");
    view.update(Vec::new(), at(20_002));
    check(
        &mut view,
        &expect![[r#"
            redis://db  0 held · 0 waiting
            by 0 processes, 0 services, 0 hosts · sorted by key · every 1s
            KEY  HOLDER  FUNCTION  AGE  REMAINING  WAITING





            0 of 0 · q end · ↑↓ PgUp PgDn move · s sort · r reverse · / filter
        "#]],
    );
}

#[test]
fn a_store_that_does_not_answer_is_notified_above_what_was_seen_last() {
    let mut view = view(2);
    view.failed("the store could not be asked: away");
    check(
        &mut view,
        &expect![[r#"
            redis://db  2 held · 0 waiting · longest for 5h33m
            the store could not be asked: away
            KEY        HOLDER  FUNCTION    AGE  REMAINING  WAITING
            key:00001  s@h:1   -         5h33m       8.2s        0
            key:00002  s@h:2   -         5h33m       8.2s        0



            1 of 2 · q end · ↑↓ PgUp PgDn move · s sort · r reverse · / filter
        "#]],
    );
}

#[test]
fn q_and_ctrl_c_end_it_and_a_q_in_a_filter_does_not() {
    let mut view = view(1);
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    press(&mut view, [KeyCode::Char('/'), KeyCode::Char('q')]);
    assert_eq!(view.key(ctrl_c), Next::End);
    press(&mut view, [KeyCode::Esc]);
    assert_eq!(view.key(KeyEvent::from(KeyCode::Char('q'))), Next::End);
}

/// Red without: `clamp` of the first row, or the `max(1)` of a page.
#[test]
fn no_terminal_is_too_small() {
    let mut view = view(30);
    press(&mut view, [KeyCode::Down; 20]);
    for (width, height) in [(0, 0), (1, 1), (3, 2), (80, 3), (10, 4), (200, 100)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
    }
}
