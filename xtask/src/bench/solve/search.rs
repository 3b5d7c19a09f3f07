//! PM instructions that each strategy has executed after equal time.

use std::fs;
use std::path::Path;

use targets::pmdk;

use super::Context;
use super::explored::{Subject, explore};
use crate::bench::compare::plot::{Plot, Series};
use crate::build;

const STRATEGIES: [(&str, &str); 3] = [("pm-aware", "#d1495b"), ("breadth", "#3c78b4"), ("random", "#5a9a4a")];
/// Points of each line.
const POINTS: u64 = 12;

/// PMDK's maps, with every byte of three operations symbolic: what they do as well as their keys.
pub fn maps() -> anyhow::Result<Vec<Subject>> {
    let mapcli = pmdk::build_mapcli(&build::targets_folder()?)?;
    let subject = |map: &&str| Subject {
        name: (*map).to_owned(),
        input: "i 11\ni 22\ni 33\ni 44\n".to_owned(),
        options: ["--seed", "input"].map(str::to_owned).to_vec(),
        command: vec![mapcli.clone().into(), (*map).into(), "pool".into(), "1".into()],
    };
    Ok(pmdk::MAPS.iter().map(subject).collect())
}

pub fn run(context: &Context, plot: Option<&Path>) -> anyhow::Result<()> {
    println!("## PM instructions executed after {} s\n", context.time);
    println!("| program | pm-aware | breadth | random | runs | | |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    let time = context.time.to_string();
    let mut sums = vec![vec![0.0; POINTS as usize + 1]; STRATEGIES.len()];
    let mut programs = 0;
    for subject in maps()?.iter().filter(|subject| context.wants(&subject.name)) {
        programs += 1;
        let mut cells = [Vec::new(), Vec::new()];
        for (number, (strategy, _)) in STRATEGIES.iter().enumerate() {
            let explored = explore(context, subject, &["--time", &time, "--search", strategy])?;
            cells[0].push(explored.number("pm_instructions").to_string());
            cells[1].push(explored.number("runs").to_string());
            let progress = explored.summary["progress"].as_array().cloned().unwrap_or_default();
            for (point, sum) in sums[number].iter_mut().enumerate() {
                let until = context.time as f64 * point as f64 / POINTS as f64;
                let reached = progress.iter().take_while(|moment| moment[0].as_f64().is_some_and(|at| at <= until));
                *sum += reached.last().and_then(|moment| moment[3].as_f64()).unwrap_or(0.0);
            }
        }
        println!("| {} | {} | {} |", subject.name, cells[0].join(" | "), cells[1].join(" | "));
    }
    println!("\nsum over {programs} programs, after each {:.1} s:\n", context.time as f64 / POINTS as f64);
    for ((strategy, _), sums) in STRATEGIES.iter().zip(&sums) {
        let sums: Vec<String> = sums.iter().skip(1).map(|sum| sum.to_string()).collect();
        println!("- {strategy}: {}", sums.join(", "));
    }
    if let Some(path) = plot {
        let at = |point: usize| context.time as f64 * point as f64 / POINTS as f64;
        let series = STRATEGIES.iter().zip(&sums).map(|((name, colour), sums)| Series {
            name: (*name).to_owned(),
            colour,
            points: sums.iter().enumerate().skip(1).filter(|p| *p.1 > 0.0).map(|(n, sum)| (at(n), *sum)).collect(),
        });
        let plot = Plot {
            title: format!("PM instructions executed, {programs} programs together"),
            x_label: "seconds for each program".to_owned(),
            y_label: "PM instructions".to_owned(),
            x_ticks: [1, 2, 4, 8, 12].map(at).to_vec(),
            series: series.collect(),
        };
        fs::write(path, plot.svg())?;
    }
    Ok(())
}
