//! The chart: transfers per decision against cores, and against how much of a limit is in flight.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, Circle, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, IntoLogRange, LineSeries, PathElement,
    RGBColor, SVGBackend, ShapeStyle, Text,
};
use plotters::style::{BLACK, Color, IntoFont, WHITE};

use super::cases::{CORES, GOAL, GOAL_CORES, Kin, Row};
use super::report::Report;

const WIDTH: u32 = 1_500;
const CHART: u32 = 560;
const TITLE: u32 = 70;
const LINE: u32 = 22;
/// Columns of the legend.
const COLUMNS: usize = 3;
/// Where none is drawn: a logarithm has no zero.
const NONE: f64 = 0.001;

const HEALTHY: [RGBColor; 9] = [
    RGBColor(0, 60, 200),
    RGBColor(0, 120, 255),
    RGBColor(0, 160, 200),
    RGBColor(60, 80, 160),
    RGBColor(90, 150, 230),
    RGBColor(0, 190, 230),
    RGBColor(40, 40, 120),
    RGBColor(120, 180, 255),
    RGBColor(0, 130, 150),
];
const HARDER: [RGBColor; 6] = [
    RGBColor(120, 80, 40),
    RGBColor(0, 150, 60),
    RGBColor(200, 160, 0),
    RGBColor(240, 120, 0),
    RGBColor(200, 30, 130),
    RGBColor(140, 60, 190),
];
const PATTERNS: [RGBColor; 2] = [RGBColor(220, 20, 20), RGBColor(60, 60, 60)];

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the report as SVG.
pub(crate) fn draw(report: &Report, file: &Path) -> Drawn {
    let cases: Vec<(&[Row], ShapeStyle)> = styled(report.cases());
    let legend = (cases.len() + 1).div_ceil(COLUMNS) as u32 * LINE + LINE;
    let root = SVGBackend::new(file, (WIDTH, TITLE + CHART + legend)).into_drawing_area();
    root.fill(&WHITE)?;
    let title = "remote line transfers per decision, log scale, none drawn at 0.001";
    root.draw(&Text::new(title, (20, 14), ("sans-serif", 20).into_font()))?;
    let how = "a MESI count of real accesses; portcullis by the harsher order of cores, patterns by the kinder";
    root.draw(&Text::new(how, (20, 42), ("sans-serif", 15).into_font()))?;
    let (_, below) = root.split_vertically(TITLE);
    let (charts, legend) = below.split_vertically(CHART);
    let (left, right) = charts.split_horizontally(WIDTH * 3 / 5);
    by_cores(&left, &cases)?;
    by_share(&right, report, &cases)?;
    for (place, (rows, style)) in cases.iter().enumerate() {
        entry(&legend, place, rows[0].case, *style)?;
    }
    entry(&legend, cases.len(), "goal: healthy at 64 cores", goal())?;
    root.present()
}

fn styled<'a>(cases: impl Iterator<Item = &'a [Row]>) -> Vec<(&'a [Row], ShapeStyle)> {
    let mut seen = [0; 3];
    let style = |rows: &'a [Row]| {
        let (colours, width): (&[RGBColor], u32) = match rows[0].kin {
            Kin::Healthy => (&HEALTHY, 3),
            Kin::Harder => (&HARDER, 2),
            Kin::Pattern => (&PATTERNS, 4),
        };
        let place = &mut seen[rows[0].kin as usize];
        *place += 1;
        (rows, colours[(*place - 1) % colours.len()].stroke_width(width))
    };
    cases.map(style).collect()
}

/// The harsher for ours, the kinder for patterns; what is too little to draw, and one core, which has nobody to ask, at the bottom.
fn height(row: &Row) -> f64 {
    let figure = if row.kin == Kin::Pattern { row.kind.transfers_per_decision() } else { row.worst() };
    figure.max(NONE)
}

fn by_cores(area: &Area<'_>, cases: &[(&[Row], ShapeStyle)]) -> Drawn {
    let most = *CORES.last().unwrap_or(&1) as f64;
    let top = cases.iter().flat_map(|(rows, _)| rows.iter()).map(height).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption("cores", ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(26)
        .y_label_area_size(60)
        .build_cartesian_2d((0.9..most * 1.1).log_scale().base(2.0), (NONE / 1.5..top * 1.5).log_scale())?;
    chart
        .configure_mesh()
        .x_labels(CORES.len())
        .x_label_formatter(&|cores| format!("{cores:.0}"))
        .y_label_formatter(&label)
        .light_line_style(RGBColor(245, 245, 245))
        .draw()?;
    chart.draw_series(LineSeries::new([(0.9, GOAL), (most * 1.1, GOAL)], goal()))?;
    // The healthy last, over the others.
    for (rows, style) in cases.iter().rev() {
        let points = rows.iter().map(|row| (row.cores as f64, height(row)));
        chart.draw_series(LineSeries::new(points.clone(), *style))?;
        chart.draw_series(points.map(|point| Circle::new(point, 4, style.filled())))?;
    }
    Ok(())
}

fn by_share(area: &Area<'_>, report: &Report, cases: &[(&[Row], ShapeStyle)]) -> Drawn {
    let top = report.near.iter().map(height).fold(10.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("% of the limit in flight, {GOAL_CORES} cores"), ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(26)
        .y_label_area_size(60)
        .build_cartesian_2d(48.0..107.0, (NONE / 1.5..top * 1.5).log_scale())?;
    chart
        .configure_mesh()
        .x_labels(12)
        .x_label_formatter(&|share| format!("{share:.0}"))
        .y_label_formatter(&label)
        .light_line_style(RGBColor(245, 245, 245))
        .draw()?;
    chart.draw_series(LineSeries::new([(48.0, GOAL), (107.0, GOAL)], goal()))?;
    for (rows, style) in cases.iter().filter(|(rows, _)| rows[0].kin == Kin::Pattern) {
        let level = rows.iter().find(|row| row.cores == GOAL_CORES).map_or(NONE, height);
        chart.draw_series(LineSeries::new([(48.0, level), (107.0, level)], *style))?;
    }
    for (rows, colour) in report.limits().zip([HEALTHY[0], HEALTHY[5]]) {
        let points: Vec<_> = rows.iter().map(|row| (f64::from(row.share.unwrap_or_default()), height(row))).collect();
        let style = colour.stroke_width(3);
        // In the middle of its way up.
        let up = points.iter().position(|(_, height)| *height > NONE).unwrap_or_default();
        let at = (points[up].0 - 14.0, (points[up].1 * NONE).sqrt());
        chart.draw_series(LineSeries::new(points.clone(), style))?;
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 4, style.filled())))?;
        let label = Text::new(rows[0].case, at, ("sans-serif", 14).into_font().color(&colour));
        chart.draw_series([label])?;
    }
    Ok(())
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as plotters asks")]
fn label(figure: &f64) -> String {
    if *figure <= NONE * 1.01 { "0".to_owned() } else { format!("{figure}") }
}

fn goal() -> ShapeStyle {
    BLACK.mix(0.3).stroke_width(6)
}

fn entry(area: &Area<'_>, place: usize, name: &str, style: ShapeStyle) -> Drawn {
    let width = WIDTH as i32 / COLUMNS as i32;
    let (x, y) = ((place % COLUMNS) as i32 * width + 40, (place / COLUMNS) as i32 * LINE as i32 + 12);
    area.draw(&PathElement::new(vec![(x, y), (x + 40, y)], style))?;
    area.draw(&Text::new(name.to_owned(), (x + 50, y - 7), ("sans-serif", 15).into_font()))
}
