//! Lines on two logarithmic axes, as SVG. The colours stand on white and on black paper; there is no background.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
/// Where the lines end; their names stand to the right of it.
const RIGHT: f64 = 560.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 340.0;
const INK: &str = "#7a828b";
/// Names of lines are kept so far apart.
const LEADING: f64 = 17.0;

/// One line of the plot, its points from left to right. All values are positive.
#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    pub colour: &'static str,
    pub points: Vec<(f64, f64)>,
}

#[derive(Clone, Debug)]
pub struct Plot {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    /// Where the horizontal axis has numbers; at least one.
    pub x_ticks: Vec<f64>,
    pub series: Vec<Series>,
}

/// A logarithmic axis: where a value lies between two ends.
#[derive(Clone, Copy, Debug)]
struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        let span = (self.most / self.least).ln().max(f64::EPSILON);
        self.from + (self.to - self.from) * (value / self.least).ln() / span
    }

    /// Powers of ten around all values.
    fn decades(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), v| (least.min(v), most.max(v)));
        let (least, most) = (10f64.powf(least.log10().floor()), 10f64.powf(most.log10().ceil()));
        Axis { least, most: most.max(least * 10.0), from, to }
    }
}

impl Plot {
    pub fn svg(&self) -> String {
        let ends =
            (self.x_ticks.iter().copied().fold(f64::MAX, f64::min), self.x_ticks.iter().copied().fold(0.0, f64::max));
        let x = Axis { least: ends.0, most: ends.1, from: LEFT + 14.0, to: RIGHT };
        let y = Axis::decades(self.series.iter().flat_map(|s| s.points.iter().map(|p| p.1)), BOTTOM, TOP);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"{INK}\">\n<title>{}</title>\n",
            escaped(&self.title)
        );
        text(&mut svg, LEFT, 24.0, "font-size=\"15\" font-weight=\"600\"", &self.title);
        self.axes(&mut svg, x, y);
        for series in &self.series {
            line(&mut svg, series, x, y);
        }
        self.names(&mut svg, y);
        svg.push_str("</svg>\n");
        svg
    }

    fn axes(&self, svg: &mut String, x: Axis, y: Axis) {
        let mut value = y.least;
        while value <= y.most * 1.01 {
            rule(svg, (LEFT, y.at(value)), (RIGHT, y.at(value)), 0.25);
            text(svg, LEFT - 8.0, y.at(value) + 4.5, "text-anchor=\"end\"", &number(value));
            value *= 10.0;
        }
        for &tick in &self.x_ticks {
            rule(svg, (x.at(tick), BOTTOM), (x.at(tick), BOTTOM + 6.0), 1.0);
            text(svg, x.at(tick), BOTTOM + 22.0, "text-anchor=\"middle\"", &number(tick));
        }
        rule(svg, (LEFT, BOTTOM), (RIGHT, BOTTOM), 1.0);
        text(svg, (LEFT + RIGHT) / 2.0, BOTTOM + 44.0, "text-anchor=\"middle\"", &self.x_label);
        let middle = (TOP + BOTTOM) / 2.0;
        let turned = format!("text-anchor=\"middle\" transform=\"rotate(-90 16 {middle:.1})\"");
        text(svg, 16.0, middle, &turned, &self.y_label);
    }

    /// The names, each at the height of its line's end or as near below as there is room.
    fn names(&self, svg: &mut String, y: Axis) {
        let mut names: Vec<(f64, &Series)> =
            self.series.iter().filter_map(|series| Some((y.at(series.points.last()?.1), series))).collect();
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        let heights = spread(&names.iter().map(|name| name.0).collect::<Vec<_>>());
        for ((_, series), height) in names.iter().zip(heights) {
            let style = format!("fill=\"{}\" font-weight=\"600\"", series.colour);
            text(svg, RIGHT + 14.0, height + 4.5, &style, &series.name);
        }
    }
}

/// Moves heights, from the top down, so that no two are nearer than [`LEADING`].
fn spread(heights: &[f64]) -> Vec<f64> {
    let mut placed: Vec<f64> = Vec::new();
    for &height in heights {
        placed.push(placed.last().map_or(height, |above| height.max(above + LEADING)));
    }
    // What was pushed out at the bottom goes up again.
    let mut floor = BOTTOM;
    for height in placed.iter_mut().rev() {
        *height = height.min(floor);
        floor = *height - LEADING;
    }
    placed
}

fn line(svg: &mut String, series: &Series, x: Axis, y: Axis) {
    let places: Vec<_> = series.points.iter().map(|&(a, b)| (x.at(a), y.at(b))).collect();
    let path: Vec<_> = places.iter().map(|(a, b)| format!("{a:.1},{b:.1}")).collect();
    let colour = series.colour;
    let path = path.join(" ");
    let _ = writeln!(svg, "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.2\"/>");
    for ((a, b), (_, value)) in places.iter().zip(&series.points) {
        let told = format!("{}: {value:.3}", escaped(&series.name));
        let _ = writeln!(
            svg,
            "<circle cx=\"{a:.1}\" cy=\"{b:.1}\" r=\"3.6\" fill=\"{colour}\"><title>{told}</title></circle>"
        );
    }
}

fn rule(svg: &mut String, from: (f64, f64), to: (f64, f64), opacity: f64) {
    let ends = format!("x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"", from.0, from.1, to.0, to.1);
    let _ = writeln!(svg, "<line {ends} stroke=\"{INK}\" stroke-opacity=\"{opacity}\"/>");
}

fn text(svg: &mut String, x: f64, y: f64, style: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>", escaped(words));
}

/// With a comma between thousands; small numbers with their decimals.
fn number(value: f64) -> String {
    if value < 0.999 {
        let digits = (-value.log10()).ceil().max(0.0) as usize;
        return format!("{value:.digits$}");
    }
    let digits = format!("{value:.0}");
    let mut told = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_drawn_inside_the_paper_and_named_once() {
        let series = |name: &str, points: &[(f64, f64)]| Series {
            name: name.into(),
            colour: "#123456",
            points: points.to_vec(),
        };
        let plot = Plot {
            title: "a < b".into(),
            x_label: "x".into(),
            y_label: "y".into(),
            x_ticks: vec![1500.0, 150_000.0],
            series: vec![series("one", &[(1500.0, 0.02), (150_000.0, 9.0)]), series("two", &[(1500.0, 0.5)])],
        };
        let svg = plot.svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(
            svg.contains(">a &lt; b</text>") && svg.contains(">1,500</text>") && svg.contains(">0.01</text>"),
            "{svg}"
        );
        assert!(svg.contains(">one</text>") && svg.contains(">two</text>"));
        for cut in svg.split("cy=\"").skip(1) {
            let height: f64 = cut.split('"').next().and_then(|n| n.parse().ok()).expect("a number");
            assert!((TOP..=BOTTOM).contains(&height), "{height}");
        }
    }

    #[test]
    fn names_do_not_overlap() {
        let placed = spread(&[100.0, 101.0, 102.0, BOTTOM, BOTTOM]);
        assert!(placed.windows(2).all(|pair| pair[1] - pair[0] >= LEADING - 1e-9), "{placed:?}");
        assert!(placed.iter().all(|&height| height <= BOTTOM));
    }

    #[test]
    fn numbers_are_told_as_people_write_them() {
        assert_eq!([0.01, 0.1, 1.0, 1500.0, 150_000.0].map(number), ["0.01", "0.1", "1", "1,500", "150,000"]);
    }
}
