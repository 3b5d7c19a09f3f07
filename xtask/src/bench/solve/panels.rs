//! Small plots side by side, one for each program, as SVG: what several strategies have reached over time. As in the other plots, the colours
//! stand on white and on black paper.

use std::fmt::Write as _;

const COLUMNS: usize = 4;
const WIDTH: f64 = 190.0;
const HEIGHT: f64 = 150.0;
/// Of the axes, within a panel.
const LEFT: f64 = 38.0;
const RIGHT: f64 = 178.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 118.0;
/// Room for the title and the names of the lines.
const HEAD: f64 = 54.0;
const INK: &str = "#7a828b";

/// What one strategy has reached: steps, each at its time, ascending.
#[derive(Clone, Debug)]
pub struct Curve {
    pub colour: &'static str,
    pub steps: Vec<(f64, f64)>,
}

#[derive(Clone, Debug)]
pub struct Panel {
    pub name: String,
    pub lines: Vec<Curve>,
}

/// All panels; the horizontal axes go from 0 to `until`, the vertical ones from the least to the most of their panel.
pub fn svg(title: &str, names: &[(&str, &str)], x_label: &str, until: f64, panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(COLUMNS);
    let (width, height) = (COLUMNS as f64 * WIDTH, HEAD + rows as f64 * HEIGHT + 20.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <text x=\"8\" y=\"18\" font-size=\"14\" fill=\"{INK}\">{title}</text>\n"
    );
    let mut at = 8.0;
    for (name, colour) in names {
        let _ = writeln!(text, "<text x=\"{at}\" y=\"40\" fill=\"{colour}\">— {name}</text>");
        at += 30.0 + 7.0 * name.len() as f64;
    }
    for (number, panel) in panels.iter().enumerate() {
        let (x, y) = ((number % COLUMNS) as f64 * WIDTH, HEAD + (number / COLUMNS) as f64 * HEIGHT);
        let _ = writeln!(text, "<g transform=\"translate({x} {y})\">\n{}</g>", one(panel, until));
    }
    let _ = writeln!(text, "<text x=\"{LEFT}\" y=\"{}\" fill=\"{INK}\">{x_label}</text>\n</svg>", height - 8.0);
    text
}

fn one(panel: &Panel, until: f64) -> String {
    let values = || panel.lines.iter().flat_map(|line| line.steps.iter().map(|step| step.1));
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let least = if least > most { 0.0 } else { least };
    let span = (most - least).max(1.0);
    let x = |time: f64| LEFT + (RIGHT - LEFT) * (time / until).min(1.0);
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * (value - least) / span;
    let mut text = format!(
        "<text x=\"{LEFT}\" y=\"20\" fill=\"{INK}\">{}</text>\n\
         <path d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\" fill=\"none\" stroke=\"{INK}\" stroke-width=\"0.7\"/>\n",
        panel.name
    );
    for value in [least, least + span] {
        let _ = writeln!(
            text,
            "<text x=\"34\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{INK}\">{value}</text>",
            y(value) + 4.0
        );
    }
    for time in [0.0, until] {
        let _ =
            writeln!(text, "<text x=\"{:.1}\" y=\"132\" text-anchor=\"middle\" fill=\"{INK}\">{time}</text>", x(time));
    }
    for (number, line) in panel.lines.iter().enumerate() {
        let Some(&(_, first)) = line.steps.first() else { continue };
        // Lines that coincide are drawn beside each other.
        let beside = number as f64 * 1.6 - 1.6;
        let mut path = format!("M{:.1} {:.1}", x(0.0), y(first) + beside);
        for &(time, value) in line.steps.iter().filter(|step| step.0 <= until) {
            let _ = write!(path, "H{:.1}V{:.1}", x(time), y(value) + beside);
        }
        let _ = writeln!(
            text,
            "<path d=\"{path}H{RIGHT}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>",
            line.colour
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_drawn_up_to_the_end_of_time() {
        let line = Curve { colour: "#123456", steps: vec![(0.0, 10.0), (2.0, 20.0), (9.0, 30.0)] };
        let panel = Panel { name: "one".to_owned(), lines: vec![line] };
        let text = svg("title", &[("a", "#123456")], "seconds", 4.0, &[panel]);
        assert!(text.contains("H108.0V"), "{text}");
        assert!(!text.contains("H178.0V"), "what came too late is drawn: {text}");
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
    }
}
