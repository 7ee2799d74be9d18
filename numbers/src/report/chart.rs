//! Lines over time as SVG, the same bytes for the same numbers.

use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, LineSeries, PathElement, RGBColor, Rectangle,
    SVGBackend, Text,
};
use plotters::style::{Color, IntoFont, TextStyle};

/// Why a chart couldn't be drawn.
pub type Undrawn = DrawingAreaErrorKind<std::io::Error>;

/// Stands for the colour of the text around it, whatever that is where the chart is shown.
const INK: RGBColor = RGBColor(1, 2, 3);
const INK_TEXT: &str = "#010203";
/// Told apart by people who see colours differently, and on white as on black. M. Okabe and K. Ito, "Color Universal Design" (2008).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 120, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 90, 160),
    RGBColor(86, 160, 220),
    RGBColor(190, 140, 0),
    RGBColor(128, 128, 128),
];
const LEGEND: i32 = 22;
/// About the width of a letter in the legend.
const LETTER: i32 = 7;

/// One line, with a name in the legend.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// x and y in order of x; a y that is no number leaves a gap.
    pub points: Vec<(f64, f64)>,
    /// x, low and high around the line, shaded; may be empty.
    pub band: Vec<(f64, f64, f64)>,
}

/// A stretch of x that is shaded, such as an outage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

/// Lines over a common x, from 0 upwards.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// What is drawn, with its unit.
    pub title: String,
    /// What x is, with its unit.
    pub across: String,
    /// From where to where x goes.
    pub range: (f64, f64),
    /// The lines.
    pub series: Vec<Series>,
    /// What is shaded behind them.
    pub stretches: Vec<Stretch>,
    /// The least that y reaches to, so that charts side by side can have the same height; more if a line goes above.
    pub top: f64,
}

impl Chart {
    /// Draws it, with text in the colour that surrounds it.
    ///
    /// # Errors
    ///
    /// [`Undrawn`] if the ranges are no numbers that can be drawn.
    pub fn svg(&self, width: u32, height: u32) -> Result<String, Undrawn> {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
            let legend = self.legend(&root, width as i32)?;
            let (_, below) = root.split_vertically(legend);
            self.lines(&below)?;
            root.present()?;
        }
        let svg = svg.replace(INK_TEXT, "currentColor");
        // Read out as one picture with a name instead of as its numbers; a page has those in tables.
        let title = super::escape(&self.title);
        Ok(svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{title}\" "), 1))
    }

    /// The height of the highest point.
    #[must_use]
    pub fn highest(&self) -> f64 {
        let points = self.series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
        let bands = self.series.iter().flat_map(|series| series.band.iter().map(|point| point.2));
        points.chain(bands).filter(|y| y.is_finite()).fold(0.0, f64::max)
    }

    /// Draws title and names; returns the height that they take.
    fn legend(&self, root: &DrawingArea<SVGBackend<'_>, Shift>, width: i32) -> Result<i32, Undrawn> {
        root.draw(&Text::new(self.title.clone(), (12, 8), text(15)))?;
        if self.series.len() < 2 {
            return Ok(LEGEND + 8);
        }
        let (mut x, mut y) = (12, 8 + LEGEND);
        for (place, series) in self.series.iter().enumerate() {
            let length = 30 + LETTER * i32::try_from(series.name.chars().count()).unwrap_or(width);
            if x > 12 && x + length > width {
                (x, y) = (12, y + LEGEND);
            }
            let mark = PathElement::new(vec![(x, y + 7), (x + 18, y + 7)], colour(place).stroke_width(3));
            root.draw(&mark)?;
            root.draw(&Text::new(series.name.clone(), (x + 24, y), text(13)))?;
            x += length + 12;
        }
        Ok(y + LEGEND)
    }

    fn lines(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Undrawn> {
        let (from, to) = self.range;
        let top = (self.highest().max(self.top) * 1.05).max(1e-9);
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_right(16)
            .x_label_area_size(38)
            .y_label_area_size(56)
            .build_cartesian_2d(from..to.max(from + 1e-9), 0.0..top)?;
        for stretch in &self.stretches {
            let (from, to) = (stretch.from.max(from), stretch.to.min(to));
            chart.draw_series([Rectangle::new([(from, 0.0), (to, top)], RGBColor(200, 60, 60).mix(0.14).filled())])?;
        }
        chart
            .configure_mesh()
            .x_desc(self.across.clone())
            .axis_desc_style(text(13))
            .label_style(text(12))
            .axis_style(INK.mix(0.5))
            .bold_line_style(INK.mix(0.12))
            .light_line_style(INK.mix(0.0))
            .x_labels(10)
            .y_labels(6)
            .x_label_formatter(&|x| label(*x))
            .y_label_formatter(&|y| label(*y))
            .draw()?;
        for (place, series) in self.series.iter().enumerate() {
            // Later lines lie over earlier ones, which show at both sides where they are the same.
            let width = 2 + (self.series.len() - 1 - place).min(3) as u32;
            for band in series.band.split(|(_, low, high)| !low.is_finite() || !high.is_finite()) {
                let mut outline: Vec<(f64, f64)> = band.iter().map(|(x, _, high)| (*x, *high)).collect();
                outline.extend(band.iter().rev().map(|(x, low, _)| (*x, *low)));
                let shade = colour(place).mix(0.18);
                chart.draw_series([plotters::element::Polygon::new(outline, shade)])?;
            }
            for run in series.points.split(|(_, y)| !y.is_finite()) {
                chart.draw_series(LineSeries::new(run.iter().copied(), colour(place).stroke_width(width)))?;
            }
        }
        Ok(())
    }
}

fn colour(place: usize) -> RGBColor {
    COLOURS[place % COLOURS.len()]
}

fn text(size: i32) -> TextStyle<'static> {
    ("system-ui, sans-serif", size).into_font().color(&INK)
}

/// As many digits as say something: 1500, 2.5, 0.05.
fn label(number: f64) -> String {
    let digits = if number.abs() >= 10.0 || number == 0.0 {
        0
    } else if number.abs() >= 0.1 {
        1
    } else {
        3
    };
    let text = format!("{number:.digits$}");
    if digits == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let points = |slope: f64| (0..20).map(|x| (f64::from(x), slope * f64::from(x))).collect::<Vec<_>>();
        let gap = points(2.0).into_iter().map(|(x, y)| (x, if x == 9.0 { f64::NAN } else { y })).collect();
        Chart {
            title: "calls/s <b>".into(),
            across: "seconds".into(),
            range: (0.0, 20.0),
            series: vec![
                Series { name: "one".into(), points: points(1.0), band: vec![(0.0, 0.0, 1.0), (19.0, 10.0, 25.0)] },
                Series { name: "two & more".into(), points: gap, band: vec![] },
            ],
            stretches: vec![Stretch { from: 5.0, to: 8.0 }],
            top: 0.0,
        }
    }

    #[test]
    fn a_chart_is_the_same_bytes_each_time_and_names_its_lines() {
        let svg = chart().svg(600, 300).unwrap();
        assert_eq!(svg, chart().svg(600, 300).unwrap());
        assert!(svg.contains("two &amp; more") && svg.contains("currentColor") && !svg.contains(INK_TEXT));
        assert!(svg.contains("aria-label=\"calls/s &lt;b&gt;\"") && !svg.contains("<b>"));
    }

    #[test]
    fn a_gap_in_the_numbers_is_a_gap_in_the_line() {
        let lines = |chart: &Chart| chart.svg(600, 300).unwrap().matches("<polyline").count();
        let mut whole = chart();
        whole.series[1].points.retain(|(_, y)| y.is_finite());
        assert_eq!(lines(&chart()), lines(&whole) + 1);
    }

    #[test]
    fn nothing_to_draw_is_drawn_too() {
        assert!(Chart::default().svg(300, 200).unwrap().starts_with("<svg"));
        let mut flat = chart();
        flat.series.iter_mut().for_each(|series| series.points.iter_mut().for_each(|point| point.1 = 0.0));
        assert!(flat.svg(300, 200).is_ok());
    }

    #[test]
    fn labels_have_the_digits_that_say_something() {
        let labels = [0.0, 1500.0, 2.5, 2.0, 0.25, 0.05, 100.0].map(label);
        assert_eq!(labels, ["0", "1500", "2.5", "2", "0.2", "0.05", "100"]);
    }
}
