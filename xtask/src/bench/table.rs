//! The table: one row per workload, one column per runner.

use std::time::Duration;

use super::measure::median;

/// The runs of one workload under one runner.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub cpu: Vec<Duration>,
    /// Of that, without the runner's own process: the target under the probe.
    pub target: Vec<Duration>,
    pub peak_kib: i64,
    pub failure: Option<String>,
}

#[derive(Debug)]
pub struct Row {
    pub name: String,
    pub goal: Option<f64>,
    pub is_start: bool,
    /// Native first.
    pub cells: Vec<Cell>,
}

/// Prints the heading and the rows.
pub fn print(runners: &[&str], rows: &[Row]) {
    let mut heading = format!("{:<20} {:>10}", "CPU time", "native");
    for name in &runners[1..] {
        heading.push_str(&format!(" {name:>21}"));
    }
    println!("{heading} {:>7} {:>18}", "goal", "memory");
    for row in rows {
        println!("{}", line(row));
    }
}

fn line(row: &Row) -> String {
    let native = &row.cells[0];
    if native.cpu.is_empty() {
        return format!("{:<20} {:>10}", row.name, "failed");
    }
    let base = median(native.cpu.clone());
    let shown = if row.is_start { format!("{:.1} ms", millis(base)) } else { format!("{:.2} s", base.as_secs_f64()) };
    let mut text = format!("{:<20} {shown:>10}", row.name);
    for cell in &row.cells[1..] {
        let shown = match &cell.failure {
            Some(failure) => failure.clone(),
            None if cell.cpu.is_empty() => "-".to_owned(),
            None if row.is_start => format!("{:.1} ms", millis(median(cell.cpu.clone()))),
            None => {
                let ratio = |all: &[Duration]| median(all.to_vec()).as_secs_f64() / base.as_secs_f64();
                match &cell.target[..] {
                    [] => format!("{:.2}×", ratio(&cell.cpu)),
                    target => format!("{:.2}× ({:.2}×)", ratio(&cell.cpu), ratio(target)),
                }
            }
        };
        text.push_str(&format!(" {shown:>21}"));
    }
    let goal = match row.goal {
        Some(goal) => format!("≤{goal}×"),
        None if row.is_start => "≤6 ms".to_owned(),
        None => String::new(),
    };
    let more = row.cells.get(1).map_or(0, |cell| cell.peak_kib - native.peak_kib) / 1024;
    format!("{text} {goal:>7} {:>7} MiB {more:+4} MiB", native.peak_kib / 1024)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
