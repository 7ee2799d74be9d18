//! Nanoseconds per decision against threads, a chart for each of the main cases, a line for each subject.

use std::path::Path as File;

use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, Circle, DrawingArea, DrawingAreaErrorKind, HSLColor, IntoDrawingArea, IntoLogRange, LineSeries,
    PathElement, RGBColor, SVGBackend, ShapeStyle, Text,
};
use plotters::style::{BLACK, Color, IntoFont, WHITE};

use super::case::{Basis, Case, Path};
use super::keys::Keys;
use super::report::Report;
use super::series::Row;
use super::subjects::{by_hand, controls, portcullis};

const WIDTH: u32 = 1_500;
const CHART: u32 = 420;
const TITLE: u32 = 60;
const LINE: u32 = 22;
/// Columns of charts, and of the legend.
const COLUMNS: usize = 3;

/// Far from each other, from blue, and from red.
const PEERS: [RGBColor; 10] = [
    RGBColor(0, 100, 0),
    RGBColor(148, 60, 190),
    RGBColor(140, 86, 75),
    RGBColor(235, 110, 190),
    RGBColor(90, 190, 60),
    RGBColor(60, 60, 60),
    RGBColor(170, 160, 0),
    RGBColor(0, 170, 150),
    RGBColor(100, 30, 80),
    RGBColor(160, 160, 160),
];

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The cases that have a chart, if they were run.
const CASES: [Case; 9] = [
    Case { path: CALLS, keys: Keys::Hot },
    Case { path: CALLS, keys: Keys::Own },
    Case { path: CALLS, keys: Keys::Zipf },
    Case { path: CALLS, keys: Keys::Million },
    Case { path: Path::Healthy(Basis::Time), keys: Keys::Hot },
    Case { path: Path::Failing(Basis::Calls, 100), keys: Keys::Hot },
    Case { path: Path::Open, keys: Keys::Hot },
    Case { path: Path::Full, keys: Keys::Hot },
    Case { path: Path::Probing, keys: Keys::Hot },
];

const CALLS: Path = Path::Healthy(Basis::Calls);

/// Draws the report as SVG.
///
/// # Errors
///
/// If the file can't be written.
pub fn draw(report: &Report, file: &File) -> Drawn {
    let charts: Vec<Vec<&Row>> = CASES.iter().map(|case| rows(report, *case)).filter(|rows| !rows.is_empty()).collect();
    let subjects = subjects(&charts);
    let lines = charts.len().div_ceil(COLUMNS).max(1) as u32;
    let legend = (subjects.len() + 1).div_ceil(COLUMNS) as u32 * LINE + LINE;
    let root = SVGBackend::new(file, (WIDTH, TITLE + lines * CHART + legend)).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!("ns per decision, log scale, against threads. {}, {}", report.date, report.machine);
    root.draw(&Text::new(title, (20, 20), ("sans-serif", 20).into_font()))?;
    let (_, below) = root.split_vertically(TITLE);
    let (above, legend) = below.split_vertically(lines * CHART);
    let areas = above.split_evenly((lines as usize, COLUMNS));
    for (area, rows) in areas.iter().zip(&charts) {
        chart(area, report, rows, &subjects)?;
    }
    let floor = ("floor: two read-modify-writes, own line", floor_style());
    let entries = subjects.iter().map(|subject| (*subject, style(&subjects, subject))).chain([floor]);
    for (place, (name, style)) in entries.enumerate() {
        entry(&legend, place, name, style)?;
    }
    root.present()
}

fn rows(report: &Report, case: Case) -> Vec<&Row> {
    // A plain map isn't a decision.
    report.rows.iter().filter(|row| row.case == case && !row.subject.starts_with(controls::MAP)).collect()
}

/// Each once: ours, the stack by hand, all others.
fn subjects<'a>(charts: &[Vec<&'a Row>]) -> Vec<&'a str> {
    let mut subjects: Vec<&str> = Vec::new();
    for row in charts.iter().flatten() {
        if !subjects.contains(&row.subject.as_str()) {
            subjects.push(&row.subject);
        }
    }
    subjects.sort_by_key(|subject| Kin::of(subject));
    subjects
}

/// Whose a subject is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kin {
    Ours,
    ByHand,
    Peer,
}

impl Kin {
    fn of(subject: &str) -> Self {
        match subject {
            ours if ours.starts_with(portcullis::NAME) => Self::Ours,
            stack if stack.starts_with(by_hand::NAME) => Self::ByHand,
            _ => Self::Peer,
        }
    }
}

fn chart(area: &Area<'_>, report: &Report, rows: &[&Row], subjects: &[&str]) -> Drawn {
    let Some(first) = rows.first() else { return Ok(()) };
    let floor = |threads: usize| report.floor(threads).map(|floor| (threads as f64, floor.median));
    let floors: Vec<_> = report.threads().into_iter().filter_map(floor).collect();
    let heights = rows.iter().map(|row| row.ns.median).chain(floors.iter().map(|(_, floor)| *floor));
    let (low, high) = heights.fold((f64::INFINITY, 0.0_f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    let threads = 0.9..report.cores as f64 + 0.1;
    let mut chart = ChartBuilder::on(area)
        .caption(first.case.title(), ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(24)
        .y_label_area_size(56)
        .build_cartesian_2d(threads, (low / 1.3..high * 1.3).log_scale())?;
    chart
        .configure_mesh()
        .x_labels(report.cores.min(16))
        .y_labels(30)
        .x_label_formatter(&|threads| if threads.fract() == 0.0 { format!("{threads:.0}") } else { String::new() })
        .y_label_formatter(&|ns| if is_round(*ns) { format!("{ns}") } else { String::new() })
        .light_line_style(RGBColor(245, 245, 245))
        .draw()?;
    chart.draw_series(LineSeries::new(floors, floor_style()))?;
    for subject in subjects {
        let points = rows.iter().filter(|row| row.subject == **subject);
        let points: Vec<_> = points.map(|row| (row.threads as f64, row.ns.median)).collect();
        let style = style(subjects, subject);
        chart.draw_series(LineSeries::new(points.clone(), style))?;
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, style.filled())))?;
    }
    Ok(())
}

/// Ours in blue and thick, the stack by hand in red, all others thin and in what is left of the colours.
fn style(subjects: &[&str], subject: &str) -> ShapeStyle {
    let kin = Kin::of(subject);
    let alike = || subjects.iter().filter(|one| Kin::of(one) == kin);
    let place = alike().position(|one| *one == subject).unwrap_or_default();
    let share = place as f64 / alike().count().max(1) as f64;
    match kin {
        Kin::Ours => HSLColor(0.52 + 0.18 * share, 1.0, 0.45).stroke_width(4),
        Kin::ByHand => HSLColor(0.1 * share, 0.9, 0.5).stroke_width(3),
        Kin::Peer => PEERS[place % PEERS.len()].stroke_width(2),
    }
}

/// Whether a figure is 1, 2 or 5 times a power of ten.
fn is_round(ns: f64) -> bool {
    let lead = ns / 10_f64.powf(ns.log10().floor());
    [1.0, 2.0, 5.0].iter().any(|round| (lead - round).abs() < 0.01)
}

fn floor_style() -> ShapeStyle {
    BLACK.mix(0.25).stroke_width(7)
}

fn entry(area: &Area<'_>, place: usize, name: &str, style: ShapeStyle) -> Drawn {
    let width = WIDTH as i32 / COLUMNS as i32;
    let (x, y) = ((place % COLUMNS) as i32 * width + 40, (place / COLUMNS) as i32 * LINE as i32 + 12);
    area.draw(&PathElement::new(vec![(x, y), (x + 40, y)], style))?;
    area.draw(&Text::new(name.to_owned(), (x + 50, y - 7), ("sans-serif", 15).into_font()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_round() {
        let shown: Vec<_> =
            [1.0, 3.0, 5.0, 20.0, 70.0, 100.0, 1_000.0].into_iter().filter(|ns| is_round(*ns)).collect();
        assert_eq!(shown, [1.0, 5.0, 20.0, 100.0, 1_000.0]);
    }
}
