//! Reports to look at: with everything in them, with many events, with nothing.

use finding::evidence::{
    CodePlace, Comparison, Difference, Evidence, Field, Lane, LaneNo, LineDifference, Mark, Operation, PlaceNo,
    ShownEvent, Side, Timeline, VERSION, Write,
};
use finding::failure::{CrashFailure, NamedStore, Remedy, Repair};
use finding::finding::{CallPath, Class, Finding, FindingId, Location, Role, Title};
use finding::note::{Note, OperationGroup, RunNote};
use finding::severity::Severity;
use finding::source::Excerpt;
use report::html::page::Report;
use report::html::run::{self, Run};
use report::json::CrashSummary;
use report::sarif::RuleText;
use trace::event::{EventId, PoolOffset, ThreadId};
use verdict::crash_point::{CrashPoint, PointKind};
use verdict::symptom::{Complaint, Failure, Party, Symptom};

/// What must never get out of a text.
pub const NASTY: &str = "</script><script>window.broken = true</script>";

pub fn location(role: Role, line: u32, function: &str) -> Location {
    Location {
        role,
        file: Some("/home/me/kv/put.c".to_owned()),
        line: Some(line),
        function: Some(function.to_owned()),
        module: "kv".to_owned(),
        address: 0x1234,
    }
}

pub fn finding(id: &str, rule: &str, class: Class, severity: Severity, locations: Vec<Location>) -> Finding {
    Finding {
        id: FindingId(id.to_owned()),
        rule: rule.to_owned(),
        class,
        severity,
        title: Title::Rule(format!(
            "something about `{}`: in words",
            locations[0].function.clone().unwrap_or_default()
        )),
        paths: vec![CallPath { count: 3, frames: locations.clone() }],
        locations,
        count: 3,
        first: EventId(7),
        thread: None,
        also: Vec::new(),
        failure: None,
        notes: vec![Note::SeenIn { groups: vec![group()], left_out: 0 }],
        replay: None,
    }
}

fn group() -> OperationGroup {
    OperationGroup { word: "put & get".to_owned(), through: Vec::new(), times: 1, first: "put <a>".to_owned() }
}

/// Power failed before a flush, and recovery noticed.
fn failure(sides: &[Location]) -> CrashFailure {
    let text = "\"a\" is <damaged>".to_owned();
    let complaint = Some(Complaint { normal: text.clone(), text });
    let store = |location: &Location| NamedStore {
        location: location.clone(),
        name: None,
        event: EventId(10),
        thread: ThreadId(0),
        thread_runs: None,
        bytes: None,
    };
    CrashFailure {
        symptom: Symptom::Failed { by: Party::Recovery, how: Failure::Exit { code: 1, complaint } },
        crash_point: CrashPoint { event: EventId(13), operation: Some(3), kind: PointKind::Flush },
        dirty_lines: 2,
        missing: vec![store(&sides[0])],
        present: vec![store(&sides[1])],
        repair: Some(Repair { insert: Remedy::Fence, after: sides[0].clone(), name: None, bytes: None, before: None }),
        recovery_from: None,
    }
}

fn excerpt() -> Excerpt {
    let lines = ["void put(void)", "{", "\tslot->value = 7; /* <b> */", "\tslot->state = FULL;", "}"];
    Excerpt { file: "/home/me/kv/put.c".to_owned(), first: 3, lines: lines.map(str::to_owned).to_vec() }
}

fn lane(offset: u64, side: Side, name: &str, in_pm: u64) -> Lane {
    Lane {
        pool: "kv.pool".to_owned(),
        offset: PoolOffset(offset),
        side,
        names: vec![name.to_owned()],
        pending: Vec::new(),
        asked: 0,
        in_pm,
    }
}

fn mark(lane: u32, stored: u64, asked: u64, guaranteed: u64) -> Mark {
    Mark { lane: LaneNo(lane), stored, asked, guaranteed }
}

fn event(id: u64, what: &str, place: u32, lane: Option<u32>, marks: Vec<Mark>) -> ShownEvent {
    ShownEvent {
        id: EventId(id),
        thread: ThreadId(0),
        what: what.to_owned(),
        place: Some(PlaceNo(place)),
        lane: lane.map(LaneNo),
        writes: Vec::new(),
        marks,
        operation: None,
    }
}

fn store(id: u64, place: u32, lane: u32, bytes: &str, guilty: bool, marks: Vec<Mark>) -> ShownEvent {
    let write = Write {
        event: EventId(id),
        lane: LaneNo(lane),
        start: 0,
        bytes: bytes.to_owned(),
        place: Some(PlaceNo(place)),
        guilty,
    };
    ShownEvent { writes: vec![write], ..event(id, "store", place, None, marks) }
}

fn places() -> (Vec<CodePlace>, Vec<Location>) {
    let frames =
        vec![location(Role::Event, 5, "put"), location(Role::Event, 6, "put"), location(Role::Event, 9, NASTY)];
    let place = |frame: u32, name: &str| CodePlace {
        frames: vec![frame, 2],
        own: 0,
        text: Some(format!("{name} = {NASTY};")),
        name: Some(name.to_owned()),
    };
    (vec![place(0, "slot->value"), place(1, "slot->state")], frames)
}

/// Two lines, one store each; the second one is flushed first. Power fails before the second flush.
fn small() -> Timeline {
    let (places, frames) = places();
    let operation = ShownEvent { operation: Some(3), place: None, ..event(9, "operation begins", 0, None, Vec::new()) };
    Timeline {
        crash: EventId(13),
        from: EventId(9),
        to: EventId(16),
        lanes: vec![lane(128, Side::Missing, "slot->value", 0), lane(64, Side::Present, "slot->state", 1)],
        events: vec![
            operation,
            store(10, 0, 0, "0700000000000000", true, vec![mark(0, 1, 0, 0)]),
            store(11, 1, 1, "0100000000000000", true, vec![mark(1, 1, 0, 0)]),
            event(12, "clwb", 1, Some(1), vec![mark(1, 1, 1, 0)]),
            event(13, "clwb", 0, Some(0), vec![mark(0, 1, 1, 0)]),
            event(14, "sfence", 0, None, vec![mark(0, 1, 1, 1), mark(1, 1, 1, 1)]),
        ],
        places,
        frames,
        lanes_left_out: 2,
        events_left_out: 1234,
    }
}

/// So many events on 64 lanes.
pub fn large(events: u64) -> Timeline {
    let (places, frames) = places();
    let side = |number: u64| if number < 2 { Side::Missing } else { Side::Other };
    let mut stored = vec![0; 64];
    let one = |id: u64| {
        let lane = id / 3 % 64;
        match id % 3 {
            0 => {
                stored[lane as usize] += 1;
                let count = stored[lane as usize];
                store(
                    id,
                    0,
                    lane as u32,
                    "0700000000000000",
                    false,
                    vec![mark(lane as u32, count, count - 1, count - 1)],
                )
            }
            1 => {
                let count = stored[lane as usize];
                event(id, "clwb", 1, Some(lane as u32), vec![mark(lane as u32, count, count, count - 1)])
            }
            _ => {
                let count = stored[lane as usize];
                event(id, "sfence", 1, None, vec![mark(lane as u32, count, count, count)])
            }
        }
    };
    Timeline {
        crash: EventId(events - 10),
        from: EventId(0),
        to: EventId(events),
        lanes: (0..64).map(|number| lane(number * 64, side(number), &format!("field_{number}"), 0)).collect(),
        events: (0..events).map(one).collect(),
        places,
        frames,
        lanes_left_out: 0,
        events_left_out: 0,
    }
}

pub fn evidence(id: &str, timeline: Timeline) -> Evidence {
    let sides = vec![location(Role::Missing, 5, "put"), location(Role::Present, 6, "put")];
    let failure = failure(&sides);
    let mut finding = finding(id, "FP0602", Class::Ordering, Severity::Error, sides);
    finding.failure = Some(Box::new(failure));
    finding.replay = Some(format!("fencepost replay {id}"));
    let operation = |index: u64, end: Option<u64>, crashed: bool| Operation {
        index,
        text: Some(format!("put key{index} <v>")),
        begin: Some(EventId(index)),
        end: end.map(EventId),
        crashed,
    };
    Evidence {
        fencepost_evidence: VERSION,
        finding,
        excerpts: vec![excerpt()],
        timeline,
        difference: Difference {
            with: Comparison::Restored,
            passes: true,
            lines: vec![LineDifference {
                pool: "kv.pool".to_owned(),
                offset: PoolOffset(128),
                failing: "00".repeat(64),
                passing: format!("07{}", "00".repeat(63)),
                fields: vec![Field { start: 0, len: 8, name: "slot->value".to_owned() }],
            }],
            left_out: 3,
        },
        operations: vec![operation(2, Some(8), false), operation(3, None, true)],
    }
}

pub fn run() -> Run {
    let crash = CrashSummary {
        points_wanted: 5,
        points_decided: 5,
        states_decided: 26,
        recovery_runs: 20,
        complete: true,
        ..CrashSummary::default()
    };
    Run {
        fencepost_run: run::VERSION,
        version: "1.2.3".to_owned(),
        date: Some(1_794_759_182),
        arguments: ["check", "--html", "r.html", "--", "./kv", "it's"].map(str::to_owned).to_vec(),
        target: ["./kv", "it's"].map(str::to_owned).to_vec(),
        folder: "/home/me/kv".to_owned(),
        pools: vec!["/home/me/kv/kv.pool".to_owned()],
        events: 1000,
        explored: vec!["tested 5 of 5 crash points".to_owned()],
        not_explored: vec!["a second power failure, during recovery (--again)".to_owned()],
        crash: Some(crash),
        ..Run::default()
    }
}

/// One finding of a crash, two of misuse.
pub fn everything() -> (Run, Vec<Evidence>) {
    let mut nasty = location(Role::Flush, 40, NASTY);
    nasty.file = None;
    let others = vec![
        finding(
            "22222222",
            "FP0201",
            Class::Performance,
            Severity::Performance,
            vec![location(Role::Flush, 6, "flush_all")],
        ),
        finding("33333333", "MY0001", Class::Custom, Severity::Warning, vec![nasty]),
    ];
    let known = vec![FindingId("22222222".to_owned())];
    let mut evidence = vec![evidence("11111111", small())];
    evidence[0].finding.paths[0].frames.push(location(Role::Missing, 9, NASTY));
    let mut run = Run {
        others,
        excerpts: vec![excerpt()],
        notes: vec![RunNote::NativeRuns { why: NASTY.to_owned() }],
        suppressed: 1,
        known,
        ..run()
    };
    run.crash.as_mut().unwrap().states_failing = 4;
    (run, evidence)
}

pub fn html(run: &Run, evidence: &[Evidence]) -> String {
    let rule = |id: &str, name: &str| RuleText {
        id: id.to_owned(),
        name: name.to_owned(),
        title: format!("what {name} is about"),
        page: format!("# {id}: {name}\n\nThe page of **{name}**.\n\n## Bad\n```c\na < b;\n```\n"),
    };
    Report { run, evidence, rules: &[rule("FP0201", "needless-flush"), rule("FP0602", "ordering")] }.html()
}
