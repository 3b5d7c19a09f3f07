//! Runs that break down without any power failure: findings of their own kind, each place once.

use finding::blame::Libraries;
use finding::finding::{CallPath, Class, Finding, FindingId, Location, Role, Title};
use finding::severity::Severity;
use trace::Tables;
use trace::event::EventId;
use trace::symbol::Symbolizer;
use verdict::end::{End, Frame};

/// Ended by a signal, or not ended in time.
pub const RULE: &str = "FP0701";

/// A finding, if the run broke down. `at` is where it was, innermost frame first.
pub fn finding(end: &End, at: &[Frame], libraries: &Libraries) -> Option<Finding> {
    let (known_by, frames, signal) = match end {
        End::Signalled { signal, path } => (0, path.as_slice(), Some(*signal)),
        // Hangs are caught anywhere in their loop: they are told apart by who called it.
        End::Hung => (1, at, None),
        End::Exited(_) | End::OverLimit(_) => return None,
    };
    let tables = Tables::default();
    let mut symbols = Symbolizer::new(&tables);
    let mut locations = cause::explain::recovery_frames(frames, &mut symbols, libraries);
    if locations.is_empty() {
        locations.push(Location {
            role: Role::Event,
            file: None,
            line: None,
            function: None,
            module: "?".to_owned(),
            address: 0,
        });
    }
    locations.iter_mut().for_each(|location| location.role = Role::Event);
    let guilty = locations[0].clone();
    Some(Finding {
        id: FindingId::new(RULE, locations.get(known_by).unwrap_or(&guilty)),
        rule: RULE.to_owned(),
        class: Class::Breakdown,
        severity: Severity::Error,
        title: Title::BreaksDown { signal },
        paths: vec![CallPath { count: 1, frames: locations }],
        locations: vec![guilty],
        count: 1,
        first: EventId(0),
        thread: None,
        also: Vec::new(),
        failure: None,
        notes: Vec::new(),
        replay: None,
    })
}
