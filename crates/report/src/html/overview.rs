//! The verdict and the numbers of a run, in words.

use finding::finding::Finding;
use finding::severity::Severity;

use super::campaign::CampaignHistory;
use super::run::Run;
use crate::json::CrashSummary;
use crate::number::{counted, in_part, separated};

/// A number of the overview.
#[derive(Debug)]
pub struct Tile {
    pub label: &'static str,
    pub value: String,
    pub of: String,
}

/// What is said first.
#[derive(Debug)]
pub struct Headline {
    /// `bad`, `fair` (only things to improve, or not all explored), `good`.
    pub mood: &'static str,
    pub title: String,
    pub short: String,
    pub lead: String,
}

/// `crashes` is how many of the findings a simulated power failure led to.
pub fn verdict(run: &Run, findings: &[&Finding], crashes: usize) -> Headline {
    let errors = findings.iter().filter(|finding| finding.severity >= Severity::Error).count();
    let total = findings.len();
    let verdict = |mood, title: String, short: String| Headline { mood, title, short, lead: lead(run, crashes) };
    let partial = run.crash.as_ref().is_some_and(|crash| !crash.complete) || run.interrupted;
    if crashes > 0 {
        let title = match crashes {
            1 => "A power failure at the wrong moment breaks this program".to_owned(),
            n => format!("A power failure at the wrong moment breaks this program in {n} ways"),
        };
        return verdict("bad", title, counted(total as u64, "finding"));
    }
    let failing = run.crash.as_ref().map_or(0, |crash| crash.states_failing);
    if failing > 0 {
        // Nobody shall take for survived what somebody has decided not to see.
        let why = if run.suppressed > 0 { "what it led to is suppressed" } else { "no cause was confirmed" };
        return verdict("fair", format!("Recovery fails after some crashes; {why}"), counted(total as u64, "finding"));
    }
    if errors > 0 {
        let title = format!("{} in the use of persistent memory", counted(errors as u64, "error"));
        return verdict("bad", title, counted(total as u64, "finding"));
    }
    if run.campaign.is_some() {
        let title = if total == 0 { "No input that was tried breaks it" } else { "No errors, but room to improve" };
        let short = if total == 0 { "nothing so far".into() } else { counted(total as u64, "finding") };
        return verdict("fair", title.to_owned(), short);
    }
    if run.crash.is_none() {
        let title =
            if total == 0 { "No misuse of persistent memory was found" } else { "No errors, but room to improve" };
        let mood = if total == 0 { "good" } else { "fair" };
        return verdict(
            mood,
            title.to_owned(),
            if total == 0 { "clean".into() } else { counted(total as u64, "finding") },
        );
    }
    let short = if total == 0 {
        if partial { "nothing so far".into() } else { "clean".into() }
    } else {
        counted(total as u64, "finding")
    };
    if partial {
        return verdict("fair", "No crash that was tried breaks it, but not all were tried".to_owned(), short);
    }
    verdict("good", "It survives every crash that was tried".to_owned(), short)
}

fn lead(run: &Run, crashes: usize) -> String {
    if let Some(campaign) = &run.campaign {
        return campaign.lead();
    }
    let Some(crash) = &run.crash else {
        if crashes > 0 {
            return "Each finding was confirmed twice on the uninstrumented program.".to_owned();
        }
        return format!(
            "Linted the {} of the recording; power failures were not simulated.",
            counted(run.events, "event")
        );
    };
    let decided = separated(crash.states_decided);
    let runs = separated(crash.recovery_runs);
    match crashes {
        0 if crash.states_failing > 0 => format!(
            "Of {decided} states that power failures can leave in persistent memory, recovery fails on {}. None of the findings below is about that.",
            separated(crash.states_failing),
        ),
        0 => format!(
            "Tested {} of {}{}: recovery coped with all {decided} states of persistent memory that were tried there ({runs} recovery runs).",
            separated(crash.points_decided),
            counted(crash.points_wanted, "crash point"),
            in_part(crash.points_in_part),
        ),
        _ => {
            let each = if crashes == 1 { "The finding is its cause" } else { "Each finding is one cause" };
            format!(
                "Of {decided} states that power failures can leave in persistent memory, recovery fails on {}. {each}, confirmed twice on the uninstrumented program.",
                separated(crash.states_failing),
            )
        }
    }
}

/// The numbers beneath.
pub fn tiles(run: &Run) -> Vec<Tile> {
    let tile = |label, value: String, of: String| Tile { label, value, of };
    let mut tiles = run.campaign.as_ref().map_or_else(Vec::new, CampaignHistory::tiles);
    if let Some(CrashSummary {
        points_wanted,
        points_decided,
        points_in_part,
        states_decided,
        states_failing,
        recovery_runs,
        runs_saved,
        ..
    }) = &run.crash
    {
        tiles.push(tile(
            "crash points tested",
            separated(*points_decided),
            format!("of {}{}", separated(*points_wanted), in_part(*points_in_part)),
        ));
        tiles.push(tile("states tested", separated(*states_decided), String::new()));
        tiles.push(tile("failing states", separated(*states_failing), String::new()));
        tiles.push(tile("recovery runs", separated(*recovery_runs), format!("{} saved", separated(*runs_saved))));
    }
    if run.events > 0 {
        tiles.push(tile("events recorded", separated(run.events), String::new()));
    }
    tiles
}

/// A command as it could be typed.
pub fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%^".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        let words = ["check", "--recover", "./kv p verify", "--", "it's", ""].map(str::to_owned);
        assert_eq!(command_line(&words), r"check --recover './kv p verify' -- 'it'\''s' ''");
    }

    #[test]
    fn verdicts_do_not_promise_more_than_was_explored() {
        let with =
            |complete| Run { crash: Some(CrashSummary { complete, ..CrashSummary::default() }), ..Run::default() };
        assert_eq!(verdict(&with(true), &[], 0).mood, "good");
        assert_eq!(verdict(&with(false), &[], 0).mood, "fair");
        assert_eq!(verdict(&Run { interrupted: true, ..with(true) }, &[], 0).mood, "fair");
        let mut failing = with(true);
        failing.suppressed = 1;
        failing.crash.as_mut().unwrap().states_failing = 4;
        let hidden = verdict(&failing, &[], 0);
        assert!(hidden.mood == "fair" && hidden.title.contains("suppressed") && hidden.lead.contains("fails on 4"));
        assert!(verdict(&Run::default(), &[], 0).lead.contains("not simulated"));
    }
}
