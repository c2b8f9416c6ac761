//! Draws a screen as an SVG picture.

use std::fmt::Write;

use vt100::{Cell, Color, Screen};

/// The width of one character of the font below.
const ACROSS: f32 = 7.85;
const DOWN: u16 = 18;
const MARGIN: u16 = 14;
/// The bar with the three buttons.
const BAR: u16 = 30;
const PAPER: &str = "#1c2128";
const INK: &str = "#d7dde4";

/// The picture, with a title in its bar.
pub(crate) fn picture(screen: &Screen, title: &str) -> String {
    let columns = screen.size().1.get();
    let empty = screen.rows(0, columns).collect::<Vec<_>>().into_iter().rev();
    let empty = empty.take_while(|row| row.trim().is_empty()).count();
    let rows = screen.size().0.get() - u16::try_from(empty).expect("not more than all");
    let wide = f32::from(columns) * ACROSS + 2.0 * f32::from(MARGIN);
    let high = rows * DOWN + BAR + MARGIN;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" role="img" aria-label="{title}">
<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>
<g fill="{INK}" opacity=".45"><circle cx="18" cy="16" r="5"/><circle cx="36" cy="16" r="5"/><circle cx="54" cy="16" r="5"/></g>
<text x="50%" y="20" text-anchor="middle" fill="{INK}" opacity=".6" font-family="sans-serif" font-size="12">{title}</text>
<g font-family="'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="13" fill="{INK}" xml:space="preserve">
"#,
        title = escaped(title),
    );
    for row in 0..rows {
        line(&mut svg, screen, row, columns);
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn line(svg: &mut String, screen: &Screen, row: u16, columns: u16) {
    let mut column = 0;
    while column < columns {
        let Some(first) = screen.cell(row, column) else { return };
        let look = Look::of(first);
        let (mut text, start) = (String::new(), column);
        while let Some(cell) = screen.cell(row, column)
            && Look::of(cell) == look
            && column < columns
        {
            if !cell.is_wide_continuation() {
                text.push_str(if cell.has_contents() { cell.contents() } else { " " });
            }
            column += 1;
        }
        run(svg, &text, &look, row, start, column - start);
    }
}

/// Draws consecutive characters of the same style.
fn run(svg: &mut String, text: &str, look: &Look, row: u16, start: u16, count: u16) {
    let (left, wide) = (f32::from(start) * ACROSS + f32::from(MARGIN), f32::from(count) * ACROSS);
    let top = row * DOWN + BAR;
    if let Some(paper) = &look.paper {
        let _infallible = writeln!(
            svg,
            r#"<rect x="{left:.1}" y="{top}" width="{wide:.1}" height="{DOWN}" fill="{paper}"/>"#
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let weight = if look.bold { r#" font-weight="bold""# } else { "" };
    let ink = look.ink.as_ref().map(|ink| format!(r#" fill="{ink}""#)).unwrap_or_default();
    // `textLength` keeps the columns in place if the viewer uses another font.
    let _infallible = writeln!(
        svg,
        r#"<text x="{left:.1}" y="{}" textLength="{wide:.1}"{ink}{weight}>{}</text>"#,
        top + 13,
        escaped(text)
    );
}

#[derive(PartialEq, Eq)]
struct Look {
    ink: Option<String>,
    paper: Option<String>,
    bold: bool,
}

impl Look {
    fn of(cell: &Cell) -> Self {
        let (mut ink, mut paper) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
        if cell.inverse() {
            (ink, paper) = (
                Some(paper.unwrap_or_else(|| PAPER.into())),
                Some(ink.unwrap_or_else(|| INK.into())),
            );
        }
        Self { ink, paper, bold: cell.bold() }
    }
}

fn colour(colour: Color) -> Option<String> {
    const NAMED: [&str; 16] = [
        "#000000", "#e5534b", "#57ab5a", "#c69026", "#539bf5", "#b083f0", "#39c5cf", "#909dab",
        "#444c56", "#ff938a", "#6bc46d", "#daaa3f", "#6cb6ff", "#dcbdfb", "#56d4dd", "#ffffff",
    ];
    match colour {
        Color::Default => None,
        Color::Idx(index) => Some(NAMED[usize::from(index) % NAMED.len()].into()),
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
