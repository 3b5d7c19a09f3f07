//! PM instructions that each strategy has executed after equal CPU time.

use std::fs;
use std::path::Path;

use targets::pmdk;
use targets::pmdk_examples::EXAMPLES;

use super::Context;
use super::explored::{Explored, Subject, explore};
use super::panels::{Curve, Panel, svg};
use crate::build;

const STRATEGIES: [(&str, &str); 3] = [("pm-aware", "#d1495b"), ("breadth", "#3c78b4"), ("random", "#5a9a4a")];

/// PMDK's maps, with every byte of four operations symbolic: what they do as well as their keys.
pub fn maps() -> anyhow::Result<Vec<Subject>> {
    let mapcli = pmdk::build_mapcli(&build::targets_folder()?)?;
    let subject = |map: &&str| Subject {
        name: (*map).to_owned(),
        input: "i 11\ni 22\ni 33\ni 44\n".to_owned(),
        options: ["--seed", "input"].map(str::to_owned).to_vec(),
        command: vec![mapcli.clone().into(), (*map).into(), "pool".into(), "1".into()],
        example: None,
    };
    Ok(pmdk::MAPS.iter().map(subject).collect())
}

/// PMDK's examples that take arguments.
pub fn examples() -> anyhow::Result<Vec<Subject>> {
    let folder = build::targets_folder()?;
    let subject = |example: &targets::pmdk_examples::Example| -> anyhow::Result<Subject> {
        let mut command = vec![example.build(&folder)?.into()];
        command.extend(example.arguments.iter().map(Into::into));
        let name = format!("{} (arguments)", example.name);
        Ok(Subject { name, input: String::new(), options: Vec::new(), command, example: Some(*example) })
    };
    EXAMPLES.iter().map(subject).collect()
}

/// What an exploration had executed at which CPU time: (seconds, PM instructions).
fn steps(explored: &Explored) -> Vec<(f64, f64)> {
    let progress = explored.summary["progress"].as_array().cloned().unwrap_or_default();
    progress.iter().filter_map(|moment| Some((moment[4].as_f64()?, moment[3].as_f64()?))).collect()
}

/// The last value that was reached until then.
fn reached(steps: &[(f64, f64)], until: f64) -> f64 {
    steps.iter().take_while(|step| step.0 <= until).last().map_or(0.0, |step| step.1)
}

pub fn run(context: &Context, plot: Option<&Path>) -> anyhow::Result<()> {
    println!("## PM instructions executed after {} s of CPU time\n", context.time);
    println!("| program | first path | pm-aware | breadth | random | paths | | |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let until = context.time as f64;
    let mut panels = Vec::new();
    let mut sums = [0.0; STRATEGIES.len()];
    let subjects = examples()?.into_iter().chain(maps()?);
    for subject in subjects.filter(|subject| context.wants(&subject.name)) {
        // At the same time, so that all have the same neighbours.
        let explored: Vec<anyhow::Result<Explored>> = std::thread::scope(|scope| {
            let begin = |(strategy, _): &(&'static str, &str)| {
                let (subject, strategy) = (&subject, *strategy);
                scope.spawn(move || explore(context, subject, strategy, &["--search", strategy]))
            };
            let threads: Vec<_> = STRATEGIES.iter().map(begin).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| anyhow::bail!("a panic"))).collect()
        });
        let explored: Vec<Explored> = explored.into_iter().collect::<anyhow::Result<_>>()?;
        let lines: Vec<Vec<(f64, f64)>> = explored.iter().map(steps).collect();
        let counts: Vec<f64> = lines.iter().map(|steps| reached(steps, until)).collect();
        let first = lines.iter().filter_map(|steps| steps.first()).map(|step| step.1).fold(f64::MAX, f64::min);
        sums.iter_mut().zip(&counts).for_each(|(sum, count)| *sum += count - first);
        let cells: Vec<String> = counts.iter().map(f64::to_string).collect();
        let runs: Vec<String> = explored.iter().map(|explored| explored.number("runs").to_string()).collect();
        println!("| {} | {first} | {} | {} |", subject.name, cells.join(" | "), runs.join(" | "));
        let line = |((_, colour), steps): (&(&str, &'static str), Vec<(f64, f64)>)| Curve { colour, steps };
        panels.push(Panel { name: subject.name, lines: STRATEGIES.iter().zip(lines).map(line).collect() });
    }
    let [aware, breadth, random] = sums;
    println!("| beyond the first paths | | {aware} | {breadth} | {random} | | | |");
    if let Some(path) = plot {
        let title = "PM instructions executed, by strategy";
        fs::write(path, svg(title, &STRATEGIES, "seconds of CPU time", until, &panels))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_later_does_not_count() {
        let steps = [(1.0, 5.0), (2.0, 8.0), (4.0, 9.0)];
        assert_eq!([0.5, 1.0, 3.9, 10.0].map(|until| reached(&steps, until)), [0.0, 5.0, 8.0, 9.0]);
    }
}
