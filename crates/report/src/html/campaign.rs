//! Of a campaign of `fuzz`: its numbers, and what was covered when, as a plot.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::overview::Tile;
use crate::number::{counted, separated};

/// How a campaign stood at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    pub second: u64,
    pub executions: u64,
    pub pm_transitions: u64,
    pub edges: u64,
    pub cases: u64,
    pub images: u64,
    pub findings: u64,
}

/// A campaign, from its first second to its last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignHistory {
    pub moments: Vec<Moment>,
    /// Crashes and hangs without any power failure, with all their repetitions.
    pub broken: u64,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 190.0;
/// Left of the plot and beneath it, for numbers.
const MARGIN: f64 = 54.0;
const FOOT: f64 = 26.0;
/// More points than that nobody can tell apart.
const POINTS: usize = 360;

impl CampaignHistory {
    fn last(&self) -> Moment {
        self.moments.last().copied().unwrap_or_default()
    }

    pub(super) fn lead(&self) -> String {
        let last = self.last();
        format!(
            "{} in {} reached {} and {}; {} are kept as test cases.",
            counted(last.executions, "execution"),
            duration(last.second),
            counted(last.pm_transitions, "PM transition"),
            counted(last.edges, "edge"),
            separated(last.cases),
        )
    }

    pub(super) fn tiles(&self) -> Vec<Tile> {
        let last = self.last();
        let tile = |label, value: u64| Tile { label, value: separated(value), of: String::new() };
        vec![
            tile("executions", last.executions),
            tile("PM transitions", last.pm_transitions),
            tile("edges", last.edges),
            tile("test cases", last.cases),
            tile("starting pools", last.images),
            tile("runs that broke down", self.broken),
        ]
    }

    /// PM transitions and edges over time, and when findings came. Empty if there is nothing to draw.
    pub(super) fn plot(&self) -> String {
        let last = self.last();
        if self.moments.len() < 2 || last.second == 0 {
            return String::new();
        }
        let step = self.moments.len().div_ceil(POINTS);
        let shown: Vec<&Moment> = self.moments.iter().step_by(step).chain(self.moments.last()).collect();
        let x = |second: u64| MARGIN + (WIDTH - MARGIN) * second as f64 / last.second as f64;
        let y = |value: u64, most: u64| (HEIGHT - FOOT) * (1.0 - value as f64 / most.max(1) as f64) + 6.0;
        let line = |of: fn(&Moment) -> u64| {
            let most = shown.iter().map(|moment| of(moment)).max().unwrap_or(1);
            let points: Vec<String> =
                shown.iter().map(|moment| format!("{:.1},{:.1}", x(moment.second), y(of(moment), most))).collect();
            points.join(" ")
        };
        let mut svg = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{} PM transitions and {} edges after {}\">",
            HEIGHT + 12.0,
            separated(last.pm_transitions),
            separated(last.edges),
            duration(last.second)
        );
        let bottom = HEIGHT - FOOT + 6.0;
        // A string takes everything.
        let _ = write!(svg, "<path d=\"M{MARGIN} 6V{bottom}H{WIDTH}\" class=\"axis\"/>");
        for (number, moment) in self.moments.iter().enumerate() {
            let before = number.checked_sub(1).map_or(0, |before| self.moments[before].findings);
            if moment.findings > before {
                let at = x(moment.second);
                let new = counted(moment.findings - before, "finding");
                let _ = write!(
                    svg,
                    "<path d=\"M{at:.1} 6V{bottom}\" class=\"found\"><title>{new} after {}</title></path>",
                    duration(moment.second)
                );
            }
        }
        let edges = line(|moment| moment.edges);
        let transitions = line(|moment| moment.pm_transitions);
        let _ = write!(
            svg,
            "<polyline points=\"{edges}\" class=\"edges\"/><polyline points=\"{transitions}\" class=\"pm\"/>"
        );
        let _ = write!(
            svg,
            "<text x=\"{0}\" y=\"16\" text-anchor=\"end\">{1}</text><text x=\"{0}\" y=\"{bottom}\" text-anchor=\"end\">0</text>\
             <text x=\"{MARGIN}\" y=\"{2}\">0 s</text><text x=\"{WIDTH}\" y=\"{2}\" text-anchor=\"end\">{3}</text></svg>",
            MARGIN - 6.0,
            separated(last.pm_transitions),
            HEIGHT + 6.0,
            duration(last.second)
        );
        svg
    }
}

fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plot_goes_from_corner_to_corner() {
        let moments = (0..=1000).map(|second| Moment {
            second,
            pm_transitions: second * 2,
            edges: 5,
            findings: second / 600,
            ..Moment::default()
        });
        let campaign = CampaignHistory { moments: moments.collect(), broken: 0 };
        let plot = campaign.plot();
        let points = plot.split("points=\"").nth(2).unwrap().split('"').next().unwrap();
        assert!(points.starts_with("54.0,170.0 ") && points.ends_with(" 720.0,6.0"), "{points}");
        assert!(points.split(' ').count() <= POINTS + 1);
        assert_eq!(plot.matches("class=\"found\"").count(), 1);
        assert!(plot.contains("1 finding after 10 min 0 s"));
        assert!(CampaignHistory::default().plot().is_empty());
    }
}
