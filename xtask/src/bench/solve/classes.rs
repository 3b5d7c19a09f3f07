//! Misuse of the published classes in PMDK's examples and maps, with symbolic arguments and operations.

use super::explored::explore;
use super::{Context, search};

/// The class of Agamotto's table 3 that a rule stands for.
fn class(rule: &str) -> &'static str {
    match rule {
        "FP0204" | "FP0205" => "extra fence",
        "FP0303" => "extra flush",
        "FP0301" | "FP0302" => "missing flush",
        _ => match rule.get(..4) {
            Some("FP01") => "missing flush or fence",
            Some("FP02") => "extra flush",
            Some("FP04") => "application-specific",
            _ => "other",
        },
    }
}

pub fn run(context: &Context) -> anyhow::Result<()> {
    println!("\n## Misuse in PMDK's examples\n");
    println!("| program | rule | class | where | after | input |\n| --- | --- | --- | --- | ---: | --- |");
    let subjects = search::examples()?.into_iter().chain(search::maps()?);
    for subject in subjects.filter(|subject| context.wants(&subject.name)) {
        let explored = explore(context, &subject, "classes", &[])?;
        for (finding, input) in explored.findings.iter().zip(&explored.inputs) {
            let rule = finding["rule"].as_str().unwrap_or_default();
            let place = &finding["locations"][0];
            let file = place["file"].as_str().unwrap_or("?").rsplit('/').next().unwrap_or_default();
            println!(
                "| {} | {rule}: {} | {} | {file}:{} | {:.1} s | `{input}` |",
                subject.name,
                finding["title"].as_str().unwrap_or_default(),
                class(rule),
                place["line"],
                finding["found_after"].as_f64().unwrap_or(0.0)
            );
        }
        if explored.findings.is_empty() {
            println!(
                "| {} | none, {} paths, {} PM instructions | | | | |",
                subject.name,
                explored.number("runs"),
                explored.number("pm_instructions")
            );
        }
    }
    Ok(())
}
