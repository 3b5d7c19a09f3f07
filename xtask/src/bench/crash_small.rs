//! What one recovery of a small program costs in the fork server, and how many states are decided in a second.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use targets::crash;

use super::crash_run::{Done, Fencepost};
use super::measure::median;
use crate::build;

/// The correct twin of this program; its pool has 1,280 bytes.
const TARGET: &str = "c/queue";

/// What the project asks for: processor time of one recovery, server and child.
const GOAL: Duration = Duration::from_millis(1);

/// Every state is run, so that the number of recoveries is known and large.
const MANY: [&str; 3] = ["--no-equivalence", "--strategy", "few-lines:3"];

/// The same, but few of them: what remains is the start.
const FEW: [&str; 5] = ["--no-equivalence", "--strategy", "few-lines:3", "--occurrences", "1"];

/// Prints the figures; whether the goal is met.
pub fn run(fencepost: &Fencepost, runs: u32) -> anyhow::Result<bool> {
    let targets = crash::all()?;
    let target = targets.iter().find(|target| target.name == TARGET).context(TARGET)?;
    let program = target.build(crash::TWIN, &build::targets_folder()?.join("crash"))?;
    fencepost.record(&target.run_command(&program, Path::new("pool")))?;
    let recovery = target.recover_command(&program, Path::new("pool"));
    let (mut served, mut all) = (Vec::new(), Vec::new());
    let mut busy = None;
    for _ in 0..runs {
        let few = fencepost.crash(&recovery, &FEW)?;
        let many = fencepost.crash(&recovery, &MANY)?;
        let recoveries = many.summary.recovery_runs.saturating_sub(few.summary.recovery_runs);
        ensure!(recoveries > 0, "{TARGET} has too few crash states to measure");
        let each = |many: Duration, few: Duration| many.saturating_sub(few) / recoveries as u32;
        served.push(each(many.recoveries_cpu(), few.recoveries_cpu()));
        all.push(each(many.cost.cpu, few.cost.cpu));
        busy = Some(many);
    }
    let usual = fencepost.crash(&recovery, &[])?;
    let Some(busy) = busy else { return Ok(true) };
    let (served, all) = (median(served), median(all));
    println!("## Fork server, {TARGET}");
    println!(
        "CPU per recovery: {:.2} ms in server and child (goal: < {} ms), {:.2} ms with Fencepost's own work",
        millis(served),
        GOAL.as_millis(),
        millis(all)
    );
    tell("every state run", &busy);
    tell("usual strategies", &usual);
    println!();
    Ok(served < GOAL)
}

fn tell(what: &str, done: &Done) {
    let summary = &done.summary;
    let per_second = |count: u64| count as f64 / done.wall.as_secs_f64();
    // A state that several strategies have asks once for each.
    let asked = summary.recovery_runs + summary.runs_saved;
    println!(
        "{what}: {} states decided by {} recoveries in {:.2} s: {:.0} states/s, {:.0} recoveries/s, {:.0} % saved by equivalence",
        summary.states_decided,
        summary.recovery_runs,
        done.wall.as_secs_f64(),
        per_second(summary.states_decided),
        per_second(summary.recovery_runs),
        100.0 * summary.runs_saved as f64 / asked.max(1) as f64
    );
    done.warn_of_native_runs(what);
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
