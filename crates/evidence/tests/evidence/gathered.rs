//! Evidence: what a report shows of a finding agrees with the trace.

use cause::analyse::RootCause;
use crash::checkpoints::PlainWalks;
use crash::points::{FailurePoint, Point, PointKind};
use crash::walk::Rules;
use evidence::file;
use evidence::gather::Case;
use finding::blame::Libraries;
use finding::evidence::{Comparison, Evidence, Side};
use finding::finding::{Class, Finding, FindingId, Location, Role, Title};
use finding::severity::Severity;
use persistency::line::LineId;
use persistency::point::Content;
use persistency::states::{Base, CrashState};
use trace::event::{CodeAddr, ContextId, EventId, LineNo, PoolId};
use verdict::verdict::Verdict;

use crate::traces::{Recorded, Step, clwb, fence, record, store};

fn line(number: u64) -> LineId {
    LineId { pool: PoolId(0), line: LineNo(number) }
}

/// Power fails before event `at`: `missing` (an event, of line 1) was not in PM, `present` (of line 2) was.
fn cause(recorded: &Recorded, at: u64, missing: u64, present: u64) -> RootCause {
    let fact = |event: u64| cause::store_history::store(&recorded.reader, EventId(event)).unwrap().unwrap();
    let key = FailurePoint { context: ContextId(0), pc: CodeAddr::default(), kind: PointKind::Flush };
    RootCause {
        class: Class::Ordering,
        missing: vec![fact(missing)],
        present: vec![fact(present)],
        program_order_is_wrong: false,
        completes: cause::classify::Completes::Unknown,
        by_accident: false,
        in_program_order: false,
        point: Point { index: 0, at: EventId(at), key, occurrence: 1 },
        state: CrashState { base: Base::Guaranteed, lines: vec![(line(2), Content::whole(1))] },
        verdict: Verdict::Pass,
        repair: None,
        flushed_at: None,
        explains: 1,
        points: Vec::new(),
        dirty_lines: 2,
    }
}

fn finding() -> Finding {
    let location =
        Location { role: Role::Missing, file: None, line: None, function: None, module: "program".into(), address: 1 };
    Finding {
        id: FindingId("1a2b3c4d".into()),
        rule: "FP0602".into(),
        class: Class::Ordering,
        severity: Severity::Error,
        title: Title::Rule("nothing orders a before b".into()),
        locations: vec![location],
        count: 1,
        paths: Vec::new(),
        first: EventId(2),
        thread: None,
        also: Vec::new(),
        failure: None,
        notes: Vec::new(),
        replay: None,
    }
}

fn evidence(recorded: &Recorded, cause: &RootCause) -> (Evidence, usize) {
    let case = Case {
        reader: &recorded.reader,
        walks: &PlainWalks::new(&recorded.reader, Rules::default()),
        cause,
        finding: &finding(),
        libraries: &Libraries::default(),
        operation: &|_| None,
    };
    let mut runs = 0;
    let mut passes = |_: &crash::image::CrashImage<'_>| {
        runs += 1;
        true
    };
    (case.evidence(&mut passes).unwrap(), runs)
}

#[test]
fn lanes_go_from_dirty_by_flushed_to_guaranteed() {
    let recorded = record(&[store(1, 1, 7), store(2, 2, 9), clwb(3, 1), clwb(4, 2), fence(5), store(6, 3, 1)]);
    let (evidence, runs) = evidence(&recorded, &cause(&recorded, 2, 0, 1));
    let timeline = &evidence.timeline;
    let lanes: Vec<(u64, Side, u64)> =
        timeline.lanes.iter().map(|lane| (lane.offset.0, lane.side, lane.in_pm)).collect();
    assert_eq!(lanes, [(64, Side::Missing, 0), (128, Side::Present, 1), (192, Side::Other, 0)]);
    let marks: Vec<Vec<(u32, u64, u64, u64)>> = timeline
        .events
        .iter()
        .map(|event| event.marks.iter().map(|m| (m.lane.0, m.stored, m.asked, m.guaranteed)).collect())
        .collect();
    let expected: [&[(u32, u64, u64, u64)]; 6] = [
        &[(0, 1, 0, 0)],
        &[(1, 1, 0, 0)],
        &[(0, 1, 1, 0)],
        &[(1, 1, 1, 0)],
        &[(0, 1, 1, 1), (1, 1, 1, 1)],
        &[(2, 1, 0, 0)],
    ];
    assert_eq!(marks, expected);
    assert_eq!((timeline.crash, runs), (EventId(2), 1));
    let guilty: Vec<u64> =
        timeline.events.iter().flat_map(|e| &e.writes).filter(|w| w.guilty).map(|w| w.event.0).collect();
    assert_eq!(guilty, [0, 1]);
    let difference = &evidence.difference;
    assert_eq!((difference.with, difference.passes, difference.lines.len()), (Comparison::Restored, true, 1));
    assert!(difference.lines[0].failing.starts_with("00") && difference.lines[0].passing.starts_with("07"));
}

#[test]
fn a_window_is_bounded_and_says_what_it_leaves_out() {
    let mut steps: Vec<Step> = vec![store(1, 1, 7)];
    for round in 0..5000 {
        steps.extend([store(2, 2 + round % 60, round), clwb(3, 2 + round % 60), fence(4)]);
    }
    steps.push(store(5, 2, 9));
    let at = steps.len() as u64;
    steps.push(clwb(6, 2));
    let recorded = record(&steps);
    let (evidence, _) = evidence(&recorded, &cause(&recorded, at, 0, at - 1));
    let timeline = &evidence.timeline;
    assert!(timeline.events.len() <= 4000 && timeline.lanes.len() <= 64, "{}", timeline.events.len());
    assert_eq!(timeline.events_left_out, 15_002 - 3000);
    // The lost store lies before the window and is still known to be pending in it.
    assert_eq!(timeline.lanes[0].pending.iter().map(|write| write.event.0).collect::<Vec<_>>(), [0]);
    assert!(timeline.lanes[0].pending[0].guilty && timeline.from > EventId(0));
}

#[test]
fn evidence_is_read_as_it_was_written() {
    let recorded = record(&[store(1, 1, 7), store(2, 2, 9), clwb(3, 1), clwb(4, 2), fence(5)]);
    let (evidence, _) = evidence(&recorded, &cause(&recorded, 2, 0, 1));
    let folder = recorded.folder.path();
    std::fs::create_dir_all(folder.join("1a2b3c4d")).unwrap();
    file::write(&evidence, folder).unwrap();
    assert_eq!(file::read(folder, &evidence.finding.id).unwrap(), evidence);
    std::fs::write(folder.join("1a2b3c4d/evidence.json"), "{}").unwrap();
    let error = file::read(folder, &evidence.finding.id).unwrap_err().to_string();
    assert!(error.contains("evidence.json") && error.contains("run the check again"), "{error}");
}

#[test]
fn what_came_too_early_is_taken_away_to_compare() {
    let recorded = record(&[store(1, 1, 7), store(2, 2, 9), clwb(3, 1), clwb(4, 2), fence(5)]);
    let early = RootCause { in_program_order: true, ..cause(&recorded, 2, 0, 1) };
    let (evidence, _) = evidence(&recorded, &early);
    let difference = &evidence.difference;
    assert_eq!((difference.with, difference.lines.len()), (Comparison::Without, 1));
    assert!(difference.lines[0].failing.starts_with("09") && difference.lines[0].passing.starts_with("00"));
}

#[test]
fn a_crash_at_the_end_and_one_when_all_is_guaranteed() {
    let recorded = record(&[store(1, 1, 7), store(2, 2, 9)]);
    let (at_end, _) = evidence(&recorded, &cause(&recorded, 2, 0, 1));
    assert_eq!(at_end.timeline.lanes.iter().map(|lane| lane.in_pm).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((at_end.timeline.to, at_end.difference.lines.len()), (EventId(2), 1));

    // The early store is guaranteed already: only an earlier crash has another content.
    let recorded = record(&[store(1, 1, 7), store(2, 2, 9), clwb(3, 2), fence(4), clwb(5, 1)]);
    let state = CrashState { base: Base::Guaranteed, lines: Vec::new() };
    let late = RootCause { in_program_order: true, state, ..cause(&recorded, 4, 0, 1) };
    let (late, _) = evidence(&recorded, &late);
    assert_eq!(late.difference.with, Comparison::Before);
    assert_eq!(late.difference.lines.len(), 2);
}
