//! Litmus tests: small traces whose outcomes the sources state, as a table ([`table`]).
//!
//! Each row lists *all* outcomes, so that a model that is too weak fails as surely as one that is too strong.

mod program;
mod table;

use std::collections::{BTreeSet, HashSet};

use persistency::model::{Fences, ModelKind};
use table::{Crash, LITMUS, Litmus};

fn check(row: &Litmus) -> Result<(), String> {
    let mut words = row.model.split(' ');
    let kind: ModelKind = words.next().unwrap_or_default().parse().map_err(|unknown| format!("{unknown}"))?;
    let mut fences = Fences::All;
    for word in words {
        match word {
            "strict" => fences = Fences::Strict,
            other => return Err(format!("`{other}` is no setting")),
        }
    }
    let points = program::run(row.program, row.shows, kind, fences)?;
    let found: BTreeSet<String> = match row.crash {
        Crash::AtEnd => points.last().cloned().unwrap_or_default(),
        Crash::Anywhere => points.into_iter().flatten().collect(),
    };
    let expected: BTreeSet<String> = row.outcomes.split(' ').map(str::to_owned).collect();
    if found == expected {
        return Ok(());
    }
    let list = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(" ");
    let not_allowed = found.difference(&expected).cloned().collect();
    let not_found = expected.difference(&found).cloned().collect();
    Err(format!("wrongly possible: [{}]; wrongly impossible: [{}]", list(not_allowed), list(not_found)))
}

#[test]
fn the_models_show_exactly_the_outcomes_of_the_sources() {
    let failed: Vec<String> = LITMUS
        .iter()
        .filter_map(|row| {
            let wrong = check(row).err()?;
            Some(format!("{} ({}, {})\n    {}\n    {wrong}", row.name, row.model, row.source, row.program))
        })
        .collect();
    assert!(failed.is_empty(), "{} of {} litmus tests fail:\n{}", failed.len(), LITMUS.len(), failed.join("\n"));
}

#[test]
fn the_table_is_big_enough_and_says_nothing_twice() {
    assert!(LITMUS.len() >= 40);
    let names: HashSet<_> = LITMUS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), LITMUS.len(), "two rows have one name");
    let tests: HashSet<_> = LITMUS.iter().map(|row| (row.model, row.program, row.crash, row.shows)).collect();
    assert_eq!(tests.len(), LITMUS.len(), "two rows are one test");
    assert!(LITMUS.iter().all(|row| !row.source.is_empty()));
}

#[test]
fn a_wrong_row_is_noticed() {
    let right = Litmus {
        name: "",
        source: "",
        model: "adr",
        program: "A: x=1; A: clwb x; A: sfence",
        crash: Crash::AtEnd,
        shows: "x",
        outcomes: "1",
    };
    assert_eq!(check(&right), Ok(()));
    assert!(check(&Litmus { outcomes: "0 1", ..right }).is_err());
    assert!(check(&Litmus { outcomes: "0", ..right }).is_err());
    assert!(check(&Litmus { model: "adr weak", ..right }).is_err());
    assert!(check(&Litmus { program: "A: clbw x", ..right }).is_err());
}
