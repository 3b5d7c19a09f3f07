//! What a check must say of a twin, of a variant, and of both when recovery is all it looks at.

use serde_json::{Value, json};
use targets::crash::{Class, CrashTarget, TWIN, Variant};

use super::bench::Bench;

/// A seed with which every variant shows its bug.
const SEED: u32 = 1;

pub fn check_twin(target: &CrashTarget, seed: u32) -> Result<(), String> {
    let bench = Bench::new(target, TWIN, &format!("seed-{seed}"))?;
    let checked = bench.check(seed)?;
    checked.insist_on_silence()?;
    checked.insist_on_all_points()?;
    bench.remove();
    Ok(())
}

pub fn check_variant(target: &CrashTarget, variant: Variant) -> Result<(), String> {
    let bench = Bench::new(target, variant, "check")?;
    let checked = bench.check(SEED)?;
    let later = breaks_down_later(target, variant);
    let fitting = checked.expected(target, variant, |class, wanted| {
        class == wanted.class.name() || (later && class == Class::Recovery.name())
    })?;
    let kinds = kinds(target, variant);
    let is_told = fitting.iter().any(|finding| names_one(finding, &kinds));
    checked.insist(is_told, &format!("the finding does not name the operation: {}", kinds.join(", ")))?;
    checked.insist_on_all_points()?;
    bench.remove();
    Ok(())
}

/// Recovery alone is content with everything that a crash leaves, and the summary says that nobody looked further.
pub fn check_silence(target: &CrashTarget, variants: &[Variant]) -> Result<(), String> {
    for variant in variants {
        let bench = Bench::new(target, *variant, "silent")?;
        let checked = bench.check_recovery_alone(SEED)?;
        checked.insist(checked.findings.is_empty(), &format!("recovery complains about variant {variant}"))?;
        let told = checked.summary["oracles"] == json!(["recovery"]);
        checked.insist(told, "the summary does not say that answers were not compared")?;
        bench.remove();
    }
    Ok(())
}

/// The kinds of operations that the bug is in, as the grammar calls them; none if it is in all of them.
fn kinds(target: &CrashTarget, variant: Variant) -> Vec<&str> {
    let bug = target.bugs.iter().find(|bug| bug.variant == variant);
    let kinds = bug.into_iter().flat_map(|bug| bug.operation.split(" and "));
    kinds.filter_map(|kind| kind.split(' ').next()).filter(|kind| *kind != "operation").collect()
}

/// Is the kind among those in which the failure is seen, or is it that of the operation whose store is lost?
fn names_one(finding: &Value, kinds: &[&str]) -> bool {
    let mut seen = finding["seen_in"].as_array().into_iter().flatten().filter_map(|group| group["word"].as_str());
    let lost = finding["lost_store_of"]["word"].as_str();
    match kinds.is_empty() {
        true => seen.next().is_some(),
        false => seen.chain(lost).any(|kind| kinds.contains(&kind)),
    }
}

/// Is the bug one that makes a later operation crash or hang? That may be told as a breakdown of the process that recovered.
fn breaks_down_later(target: &CrashTarget, variant: Variant) -> bool {
    let bug = target.bugs.iter().find(|bug| bug.variant == variant);
    bug.is_some_and(|bug| bug.symptom.contains("of a later operation"))
}
