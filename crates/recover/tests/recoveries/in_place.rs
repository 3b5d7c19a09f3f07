//! A run in a process that was put back is the same as a run in a fork, whatever the runs before it have done to their process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use recover::command::{Command, Input, Operations};
use recover::limits::Limits;
use recover::report::RunReport;
use recover::server::{Arrival, Server};
use recover::slot::Slot;
use trace::event::PoolId;
use wire::recover::not_put_back;

/// Bits of `in_place.c`.
const UNDONE: u32 = 0b1_1111_1111;
const THREAD: u32 = 1 << 10;
const ALL: u32 = (1 << 20) - 1;

struct World {
    slot: Slot,
    command: Command,
    _temporary: tempfile::TempDir,
}

impl World {
    fn new(source: &str, stdin: Input) -> World {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().canonicalize().unwrap();
        let program = dir.join("program");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/in_place").join(source);
        let built =
            process::Command::new("cc").args(["-O1", "-g", "-pthread", "-o"]).arg(&program).arg(source).status();
        assert!(built.expect("cc is installed").success());
        let public = dir.join("public");
        std::fs::create_dir(&public).unwrap();
        let pool: PathBuf = public.join("pool");
        std::fs::write(&pool, [0; 4096]).unwrap();
        let slot = Slot::create(&[(pool, 4096)]).unwrap();
        let args = [OsString::from("pool")].into();
        let command = Command { program, args, env: vec![], dir: public, stdin };
        World { slot, command, _temporary: temporary }
    }

    fn server(&self, in_place: bool) -> Server {
        let mut server = Server::new(&self.command, &self.slot).unwrap();
        server.in_place = in_place;
        server
    }

    /// What a run finds and does, without what depends on the machine.
    fn run(&mut self, server: &mut Server, what: u32, end: u8) -> RunReport {
        let limits = Limits { wall: Duration::from_millis(if end > 5 { 300 } else { 60_000 }), ..Limits::default() };
        let [low, middle, high, _] = what.to_le_bytes();
        self.slot.write(PoolId(0), 0, &[low, middle, high, end]).unwrap();
        self.slot.write(PoolId(0), 128, &[0]).unwrap();
        let report = server.run(&self.slot, &limits).unwrap();
        RunReport { cpu: Duration::ZERO, wall: Duration::ZERO, ..report }
    }
}

/// Runs the same on two servers.
struct Pair {
    forking: (World, Server),
    in_place: (World, Server),
}

impl Pair {
    fn new() -> Pair {
        let with = |in_place| {
            let world = World::new("in_place.c", Input::Empty);
            let server = world.server(in_place);
            (world, server)
        };
        Pair { forking: with(false), in_place: with(true) }
    }

    #[track_caller]
    fn same(&mut self, what: u32, end: u8) -> RunReport {
        let [expected, got] =
            [&mut self.forking, &mut self.in_place].map(|(world, server)| world.run(server, what, end));
        let [one, other] = [&expected, &got].map(|report| String::from_utf8_lossy(&report.stdout));
        assert_eq!(one, other, "what a run finds that will change {what:#b} and end by {end}");
        let dirs = [&self.forking, &self.in_place].map(|(world, _)| world.dir());
        let without_modules =
            |report: &RunReport| dirs.iter().fold(format!("{report:?}"), |text, dir| text.replace(dir, ""));
        assert_eq!(without_modules(&expected), without_modules(&got), "{what:#b}, {end}");
        got
    }

    fn put_back(&self) -> u64 {
        self.in_place.1.processes().put_back
    }
}

impl World {
    fn dir(&self) -> String {
        self.command.dir.parent().unwrap().to_string_lossy().into_owned()
    }
}

#[test]
fn what_is_known_to_be_undone_is_undone_in_place() {
    let mut pair = Pair::new();
    for bit in (0..8).chain([17]) {
        for end in 0..=4 {
            // The first times it has pages to learn.
            for _ in 0..6 {
                pair.same(1 << bit, end);
            }
            pair.same(0, 0);
            let before = pair.put_back();
            for _ in 0..3 {
                pair.same(1 << bit, end);
                let processes = pair.in_place.1.processes();
                assert_eq!(processes.why_not, not_put_back::NONE, "bit {bit}, end {end}: {processes:?}");
                pair.same(0, 0);
            }
            assert_eq!(pair.put_back() - before, 6, "bit {bit}, end {end}");
        }
    }
    assert_eq!(pair.forking.1.processes().put_back, 0);
}

#[test]
fn what_cannot_be_undone_ends_the_process() {
    let mut pair = Pair::new();
    for bit in (9..20).filter(|bit| *bit != 17) {
        for _ in 0..6 {
            pair.same(0, 0);
        }
        let before = pair.put_back();
        pair.same(0, 0);
        assert_eq!(pair.put_back() - before, 1);
        for _ in 0..4 {
            pair.same(1 << bit, 0);
        }
        let why_not = pair.in_place.1.processes().why_not;
        let is_final = !matches!(why_not, not_put_back::NONE | not_put_back::LEARNED | not_put_back::NEW_PAGES);
        assert!(is_final, "bit {bit}: {:?}", pair.in_place.1.processes());
        pair = Pair::new();
    }
}

#[test]
fn any_order_of_changes_and_ends() {
    let mut pair = Pair::new();
    // A linear congruential generator (Knuth vol. 2, 3.3.4).
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    for run in 0..250 {
        let rare = run % 8 == 7;
        let what = random() & random() & if rare { ALL & !THREAD } else { UNDONE };
        let end = if run % 60 == 59 { 6 } else { random() as u8 % 6 };
        pair.same(what, end);
    }
    assert!(pair.put_back() > 60, "{:?}", pair.in_place.1.processes());
}

/// What the runs of a fuzzing campaign show, with and without forks.
#[test]
fn coverage_and_answers_are_those_of_forks() {
    let served = |in_place| {
        let world = World::new("lines.c", Input::Operations(Operations::default()));
        let mut server = world.server(in_place);
        server.count_coverage();
        (world, server)
    };
    let mut both = [served(false), served(true)];
    let lines: Vec<String> =
        (0..90u32).map(|n| format!("{} {}\n", ["a", "d", "x"][n as usize * 7 % 3], n * 977)).collect();
    for round in 0..40 {
        let prefix = lines[round..round + round % 4].concat();
        let shown = both.each_mut().map(|(world, server)| {
            server.ends_with_input = round % 3 == 0;
            server.leave().unwrap();
            if round % 5 == 0 {
                world.slot.remove().unwrap();
            }
            let feed = |server: &mut Server, more: usize| {
                server.feed((prefix.clone() + &lines[more..more + 4].concat()).as_bytes()).unwrap();
            };
            feed(server, 1);
            if round % 2 == 0 {
                let arrival = server.run_to(&world.slot, &Limits::default(), prefix.len() as u64).unwrap();
                assert!(matches!(arrival, Arrival::Stopped { .. }), "{arrival:?}");
            }
            let mut all = Vec::new();
            for more in [3, 20, 40, 60] {
                feed(server, more);
                let report = server.run(&world.slot, &Limits::default()).unwrap();
                all.push((report.end, report.stdout, report.dirtied, report.boundaries, server.maps().to_vec()));
            }
            all
        });
        assert!(shown[0] == shown[1], "round {round}");
    }
    let processes = both[1].1.processes();
    assert!(processes.put_back > 40, "{processes:?}");
}
