//! Remarks on a finding.

use finding::note::{CodeLine, Condition, Note, OperationGroup, StartingPool};

use super::place::file_name;
use super::times;
use crate::number::counted;

/// A sentence without its full stop.
pub fn note(note: &Note) -> String {
    match note {
        Note::BrokenCondition { condition, first, second } => condition_words(*condition, &line(first), &line(second)),
        Note::LostStoreOf { operation } => {
            let number = operation.number.map_or_else(String::new, |number| format!(" {number}"));
            format!(
                "the lost store is of operation{number} (`{}`, {}), which was over when power failed",
                operation.text, operation.word
            )
        }
        Note::SeenIn { groups, left_out } => {
            let named: Vec<String> = groups.iter().map(group).collect();
            let more = if *left_out > 0 { format!("; and {left_out} more") } else { String::new() };
            format!("seen in the operations: {}{more}", named.join("; "))
        }
        Note::InFile { name } => format!("the data lies in {name}"),
        Note::FencedIn { function, module } => {
            let library = module.split(".so").next().unwrap_or(module);
            match function {
                Some(function) => format!("completed only by a locked instruction in `{function}` ({library})"),
                None => format!("completed only by a locked instruction in {library}"),
            }
        }
        Note::NotSeparated { stores } => format!(
            "which of {} is to blame cannot be told apart: the failure shows only while all of them are not in PM",
            counted(*stores, "store")
        ),
        Note::OrderAlone => "nothing orders the two either; an order alone may not help, because recovery fails with \
                             either one without the other"
            .to_owned(),
        Note::NotInTransaction => {
            "the store is in a transaction that knows nothing of it: add the range before it (`pmemobj_tx_add_range`, \
             `TX_ADD`), and the commit makes it durable"
                .to_owned()
        }
        Note::NotNeeded { states } => format!(
            "{} checked, and none needs it after a restart: this workload never reads it back",
            counted(*states, "crash state")
        ),
        Note::FoundByCase { case, executions, parts, of_parts, folder } => format!(
            "found by case {case:06} after {}; its input, shortened to {parts} of {}, and its starting pool are in {folder}",
            counted(*executions, "execution"),
            counted(*of_parts, "part")
        ),
        Note::BeganWith { pool: StartingPool::None } => "it began without a pool".to_owned(),
        Note::BeganWith { pool: StartingPool::CrashImage { event, state } } => {
            format!("it began with a crash image: power failed at event {event} of its run ({state})")
        }
        Note::BeganWith { pool: StartingPool::OfEarlierCase } => {
            "it began with a pool that an earlier case left".to_owned()
        }
    }
}

fn group(group: &OperationGroup) -> String {
    let through = match &group.through[..] {
        [] => String::new(),
        names => format!(" that goes through `{}`", names.join("`, `")),
    };
    format!("{}{through} ({}, first `{}`)", group.word, times(group.times), group.first)
}

fn line(at: &CodeLine) -> String {
    match (&at.file, at.line) {
        (Some(file), Some(line)) => format!("{}:{line}", file_name(file)),
        _ => format!("the instruction at {:#x}", at.address),
    }
}

fn condition_words(condition: Condition, first: &str, second: &str) -> String {
    let (name, why) = match condition {
        Condition::Po1 => {
            ("PO1", format!("{second} stores what was computed from what {first} reads: that should be in PM before"))
        }
        Condition::Po2 => {
            ("PO2", format!("{second} stores only if what {first} reads says so: that should be in PM before"))
        }
        Condition::Po3 => (
            "PO3",
            format!(
                "{first} is reached only if what {second} reads says so: what it reads should be in PM before the other"
            ),
        ),
        Condition::Pa1 => (
            "PA1",
            format!("{first} and {second} both read what decides about other data: they should reach PM together"),
        ),
    };
    format!("the state breaks a condition inferred from the run ({name}): {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That data is never needed, no check can tell: it speaks of this workload.
    #[test]
    fn what_no_state_needs_is_not_called_needless() {
        let words = note(&Note::NotNeeded { states: 12 });
        assert!(words.starts_with("12 crash states checked") && words.contains("this workload never"), "{words}");
        assert!(!["transient", "volatile", "DRAM"].iter().any(|claim| words.contains(claim)), "{words}");
        assert_eq!(note(&Note::InFile { name: "/run/app.lock".to_owned() }), "the data lies in /run/app.lock");
    }
}
