//! What a check must say of a twin, of a variant, and of both when recovery is all it looks at.

use serde_json::Value;
use targets::crash::{Class, CrashTarget, Expectation, TWIN, Variant};

use super::bench::{Bench, Checked};

/// A seed with which every variant shows its bug.
const SEED: u32 = 1;

pub fn check_twin(target: &CrashTarget, seed: u32) -> Result<(), String> {
    let bench = Bench::new(target, TWIN, &format!("seed-{seed}"))?;
    let checked = bench.check(seed)?;
    insist(checked.findings.is_empty(), "the twin is correct, but there are findings", &checked)?;
    all_decided(&checked)?;
    bench.remove();
    Ok(())
}

pub fn check_variant(target: &CrashTarget, variant: Variant) -> Result<(), String> {
    let bench = Bench::new(target, variant, "check")?;
    let checked = bench.check(SEED)?;
    let expected: Vec<&Expectation> = target.expected(variant).collect();
    let is_found = checked.findings.iter().any(|finding| expected.iter().any(|wanted| fits(finding, wanted, target)));
    let wanted = expected.iter().map(|e| format!("{} at line {} in {}", e.class, e.line, e.function.name));
    insist(is_found, &format!("expected {}", wanted.collect::<Vec<_>>().join(" or ")), &checked)?;
    let names_operation = |finding: &Value| finding["notes"].to_string().contains("operation ");
    let is_told = checked.findings.iter().any(names_operation) || breaks_down_later(target, variant);
    insist(is_told, "no finding names an operation", &checked)?;
    all_decided(&checked)?;
    bench.remove();
    Ok(())
}

/// Recovery alone is content with everything that a crash leaves.
pub fn check_silence(target: &CrashTarget, variants: &[Variant]) -> Result<(), String> {
    for variant in variants {
        let bench = Bench::new(target, *variant, "silent")?;
        let checked = bench.check_recovery_alone(SEED)?;
        insist(checked.findings.is_empty(), &format!("recovery complains about variant {variant}"), &checked)?;
        bench.remove();
    }
    Ok(())
}

fn insist(is_so: bool, complaint: &str, checked: &Checked) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(format!("{complaint}\n{}", checked.output)) }
}

fn all_decided(checked: &Checked) -> Result<(), String> {
    let Checked { summary, .. } = checked;
    insist(summary["points_decided"] == summary["points_wanted"], "not all was decided", checked)
}

/// The class, and a location inside the function of the guilty line.
fn fits(finding: &Value, wanted: &Expectation, target: &CrashTarget) -> bool {
    let file = target.source.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let inside = |location: &Value| {
        let line = location["line"].as_u64().unwrap_or(0) as u32;
        location["file"].as_str().is_some_and(|path| path.ends_with(file)) && wanted.function.lines.contains(&line)
    };
    let locations = finding["locations"].as_array().map_or(&[][..], Vec::as_slice);
    let is_class = finding["class"] == wanted.class.name()
        || (finding["class"] == Class::Recovery.name() && breaks_down_later(target, wanted.variant));
    is_class && locations.iter().any(inside)
}

/// Is the bug one that makes a later operation crash or hang? That may be told as a breakdown of the process that recovered.
fn breaks_down_later(target: &CrashTarget, variant: Variant) -> bool {
    let bug = target.bugs.iter().find(|bug| bug.variant == variant);
    bug.is_some_and(|bug| bug.symptom.contains("of a later operation"))
}
