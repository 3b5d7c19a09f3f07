//! How many events per second the built-in rules take, from a trace on disk, and how much memory.
//!
//! `cargo run --release -p lint --example lint_throughput TRACE [adr|eadr]`

use std::fs;
use std::path::Path;

use finding::blame::Libraries;
use lint::lint::{Options, lint};
use lint::registry::Settings;
use persistency::model::{Fences, ModelKind};
use trace::TraceReader;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: throughput TRACE [adr|eadr]")?;
    let model: ModelKind = args.next().as_deref().unwrap_or("adr").parse()?;
    let reader = TraceReader::open(Path::new(&path))?;
    let start = cpu_seconds()?;
    let mut events = reader.events();
    while events.next()?.is_some() {}
    let read = cpu_seconds()? - start;
    let options = Options { model, fences: Fences::All, libraries: Libraries::default() };
    let start = cpu_seconds()?;
    let report = lint(&reader, Settings::default().activate(Vec::new())?, &options)?;
    let linted = cpu_seconds()? - start;
    let million = report.events as f64 / 1e6;
    println!("{million:.1} M events, {} findings", report.findings.len());
    println!("read only: {:.1} M events/s; lint: {:.1} M events/s", million / read, million / linted);
    let status = fs::read_to_string("/proc/self/status")?;
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    Ok(())
}

/// CPU time of this thread, which the other programs of a busy machine do not change much.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split_whitespace().next().ok_or("no schedstat")?.parse()?;
    Ok(nanoseconds / 1e9)
}
