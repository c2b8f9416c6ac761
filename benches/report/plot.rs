//! Line plots with logarithmic axes, as SVG for light and dark backgrounds.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use crate::measured::Measured;
use crate::peers::Peer;

/// Visible on white and on black, because the background is transparent.
const INK: RGBColor = RGBColor(128, 136, 146);
const SIZE: (u32, u32) = (760, 420);
const FONT: &str = "sans-serif";

pub(crate) struct Plot<'a> {
    pub(crate) file: &'a str,
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone)]
pub(crate) struct Line {
    name: &'static str,
    style: (RGBColor, u32),
    points: Vec<(f64, f64)>,
}

impl Line {
    pub(crate) fn of(peer: Peer) -> Self {
        Self { name: peer.name(), style: style(peer), points: Vec::new() }
    }

    /// A line that is not a peer's, in the `nth` of a few colors.
    pub(crate) fn named(name: &'static str, nth: usize, points: Vec<(f64, f64)>) -> Self {
        Self { name, style: (COLORS[nth % COLORS.len()], 2), points }
    }

    /// Adds a point, if the peer was measured there.
    pub(crate) fn push(&mut self, x: usize, all: &[Measured], y: impl Fn(&Measured) -> f64) {
        let measured = all.iter().find(|measured| measured.peer.name() == self.name);
        let point = measured.map(|measured| (x as f64, y(measured)));
        // Zero has no logarithm.
        self.points.extend(point.filter(|&(_, y)| y > 0.0));
    }
}

impl Plot<'_> {
    pub(super) fn draw(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let Some((xs, ys)) = self.ranges() else {
            return Err("nothing to draw".into());
        };
        let root = SVGBackend::new(path, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .caption(self.title, (FONT, 17).into_font().color(&INK))
            .margin(12)
            .margin_right(170)
            .x_label_area_size(42)
            .y_label_area_size(74)
            .build_cartesian_2d(xs.log_scale().base(2.0), ys.log_scale())?;
        chart
            .configure_mesh()
            .bold_line_style(INK.mix(0.25))
            .light_line_style(TRANSPARENT)
            .axis_style(INK)
            .label_style((FONT, 13).into_font().color(&INK))
            .axis_desc_style((FONT, 14).into_font().color(&INK))
            .x_desc(self.x)
            .y_desc(self.y)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| short(*y))
            .draw()?;
        for line in &self.lines {
            let (color, width) = line.style;
            let stroke = color.stroke_width(width);
            chart.draw_series(LineSeries::new(line.points.iter().copied(), stroke))?;
            let dots =
                line.points.iter().map(|&point| Circle::new(point, width + 1, color.filled()));
            chart.draw_series(dots)?;
        }
        self.name_lines(&root)?;
        root.present()?;
        Ok(())
    }

    /// Beside the plot, in the order in which the lines end.
    fn name_lines(
        &self,
        root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    ) -> Result<(), Box<dyn Error>> {
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        let end = |line: &Line| line.points.last().map_or(0.0, |&(_, y)| y);
        lines.sort_by(|a, b| end(b).total_cmp(&end(a)));
        for (n, line) in lines.into_iter().enumerate() {
            let (color, width) = line.style;
            let (left, y) = (SIZE.0 as i32 - 160, 60 + 24 * n as i32);
            root.draw(&PathElement::new(
                vec![(left, y), (left + 22, y)],
                color.stroke_width(width),
            ))?;
            let font = (FONT, 14).into_font().color(&INK);
            root.draw(&Text::new(line.name, (left + 30, y - 7), font))?;
        }
        Ok(())
    }

    fn ranges(&self) -> Option<(std::ops::Range<f64>, std::ops::Range<f64>)> {
        let points = || self.lines.iter().flat_map(|line| line.points.iter().copied());
        let (xs, ys) = (points().map(|(x, _)| x), points().map(|(_, y)| y));
        let (left, right) = (xs.clone().reduce(f64::min)?, xs.reduce(f64::max)?);
        let (low, high) = (ys.clone().reduce(f64::min)?, ys.reduce(f64::max)?);
        // Whole powers of ten, so that there are labels at both ends.
        let (low, high) = (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0));
        Some((left..right, 10f64.powf(low)..10f64.powf(high)))
    }
}

/// Colors for lines that are not peers': distinct on white and on black, and for most color-blind
/// readers.
const COLORS: [RGBColor; 7] = [
    RGBColor(47, 129, 247),
    RGBColor(217, 95, 2),
    RGBColor(27, 158, 119),
    RGBColor(231, 41, 138),
    RGBColor(230, 171, 2),
    RGBColor(117, 112, 179),
    RGBColor(128, 136, 146),
];

/// Each peer looks the same in all plots: lockattr's line is broad, and a crate with its own pause
/// is darker than with a short one.
fn style(peer: Peer) -> (RGBColor, u32) {
    match peer {
        Peer::Ours | Peer::Background | Peer::Linger | Peer::Permits | Peer::Mixed => {
            (RGBColor(47, 129, 247), 4)
        }
        Peer::Rslock => (RGBColor(217, 95, 2), 2),
        Peer::RslockQuick => (RGBColor(245, 166, 91), 2),
        Peer::Rlock => (RGBColor(27, 158, 119), 2),
        Peer::RlockQuick => (RGBColor(110, 201, 168), 2),
        Peer::Bare | Peer::RedisPy | Peer::RedisSemaphore => (INK, 2),
    }
}

/// `20k` for 20,000.
fn short(value: f64) -> String {
    match value {
        1e6.. => format!("{}M", value / 1e6),
        1e3.. => format!("{}k", value / 1e3),
        _ => format!("{value}"),
    }
}
