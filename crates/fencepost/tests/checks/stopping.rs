//! Ctrl-C and budgets end every phase of a check, whatever the recoveries are at.
//!
//! Recoveries wait at a gate that nobody opens, with a time limit far beyond that of the tests: only a run that is ended in the middle lets
//! these tests end. How long that takes is not measured, since the machine may be busy; where time matters, runs are counted.

use std::fs;

use crate::crash_support::{Case, parse};

/// A search whose recoveries may take for ever.
fn line<'a>(case: &Case, recovery: &'a str, budget: &'a str, engine: &'a str) -> Vec<&'a str> {
    let words = case.crash_line(recovery, &["--no-journal", "--engine", engine]);
    let replaced = |word| match word {
        "none" => budget,
        "100s" => "100000s",
        word => word,
    };
    words.into_iter().map(replaced).collect()
}

#[test]
fn one_interrupt_ends_a_recovery_in_the_middle_and_tells_what_is_known() {
    for engine in ["fork-server", "native"] {
        let case = Case::new();
        case.record("20");
        let recovery = case.gated();
        case.close_gate();
        let mut started = case.start(&line(&case, &recovery, "none", engine));
        case.wait_for_gate(&mut started);
        started.signal_group(libc::SIGINT);
        let ended = started.end();
        assert_eq!(ended.code, Some(130), "{engine}: {}", ended.err);
        let (_, summary) = parse(&ended);
        assert_eq!(summary["complete"], false);
        assert!(summary["states_decided"].as_u64().is_some_and(|states| states > 0), "{engine}: {summary}");
        case.wait_until_forgotten();
        assert_eq!(case.slots_left(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn a_second_interrupt_ends_it_at_once() {
    let case = Case::new();
    case.record("20");
    let recovery = case.gated();
    case.close_gate();
    let mut started = case.start(&line(&case, &recovery, "none", "fork-server"));
    case.wait_for_gate(&mut started);
    started.signal_group(libc::SIGINT);
    started.signal_group(libc::SIGTERM);
    let ended = started.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    case.wait_until_forgotten();
}

#[test]
fn a_budget_ends_a_recovery_in_the_middle() {
    for engine in ["fork-server", "native"] {
        let case = Case::new();
        case.record("20");
        let recovery = case.gated();
        case.close_gate();
        let ended = case.start(&line(&case, &recovery, "2s", engine)).end();
        assert!(matches!(ended.code, Some(0 | 1)), "{engine}: {:?} {}", ended.code, ended.err);
        assert_eq!(parse(&ended).1["complete"], false, "{engine}");
        case.wait_until_forgotten();
    }
}

/// Nearly every state fails, in very many ways, and each run takes a tenth of a second.
#[test]
fn many_failing_states_do_not_exceed_the_budget() {
    let case = Case::new();
    case.record("60");
    let runs = case.gate();
    let recovery = format!("{} {}", case.recovery("slow"), runs.display());
    // In the fork server time is virtual, and nobody sleeps.
    let ended = case.start(&line(&case, &recovery, "3s", "native")).end();
    assert!(matches!(ended.code, Some(0 | 1)), "{:?} {}", ended.code, ended.err);
    assert!(parse(&ended).1["states_failing"].as_u64().is_some_and(|states| states > 0));
    // One worker, 3 s and a quarter and 5 s more, by ten runs a second: not more than 90, whatever the machine does meanwhile.
    let runs = fs::read(runs).expect("runs leave something").len();
    assert!(runs <= 90, "{runs} runs");
}
