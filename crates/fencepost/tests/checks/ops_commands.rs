//! One process per operation: rows of forks, and known effects of commands, against a driver that starts every process anew.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::cli_support::{Ran, Sandbox};
use crash::assignment::Assignment;
use crash::walk::{Rules, Walk};
use operation::boundaries::BoundarySource;
use operation::equivalence::Asking;
use operation::workload::Workload;
use oracle::oracle::Oracle;
use recover::limits::Limits;
use runner::plan::{EngineChoice, OperationPlan, RecoveryPlan};
use runner::reference::run::reference_answers;
use runner::runner::Runner;
use targets::pmdk_examples::EXAMPLES;
use trace::TraceReader;
use trace::event::EventId;

const OWN: &str = env!("CARGO_BIN_EXE_fencepost");

fn tally(folder: &Path) -> PathBuf {
    let out = folder.join("tally");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/tally.c");
    let status = Command::new("cc").args(["-O1", "-g", "-o"]).arg(&out).arg(source).status();
    assert!(status.expect("cc is installed").success());
    out
}

/// A recorded workload of commands.
struct Recorded {
    folder: tempfile::TempDir,
    reader: TraceReader,
    operations: Arc<OperationPlan>,
    words: Vec<String>,
}

impl Recorded {
    fn new(operations: &str, readback: &str) -> Recorded {
        let folder = tempfile::tempdir().expect("writable");
        let path = |name: &str| folder.path().join(name);
        let words = [OWN, "drive", "command", "--"].map(str::to_owned).into_iter();
        let command = [tally(folder.path()), path("pool")].map(|word| word.to_str().expect("text").to_owned());
        let words: Vec<String> = words.chain(command).chain(["{op}".to_owned()]).collect();
        let workload = Workload::new(operations.as_bytes(), readback.as_bytes()).expect("a workload");
        fs::write(path("input"), workload.operations()).expect("writable");
        let mut record = Command::new(OWN);
        record.args(["record", "--quiet", "--operations", "stdin", "-o"]).arg(path("trace")).arg("--").args(&words);
        record.stdin(File::open(path("input")).expect("written")).stdout(Stdio::null()).current_dir(folder.path());
        assert!(record.status().expect("it starts").success());
        let reader = TraceReader::open(&path("trace")).expect("a trace");
        let operations = Arc::new(OperationPlan {
            workload,
            operations_after: 6,
            recorded: None,
            asking: Asking::Fed,
            boundaries: BoundarySource::Events,
        });
        Recorded { folder, reader, operations, words }
    }

    /// `driver`: the executable that starts the commands.
    fn runner(&self, driver: &Path) -> Runner {
        let mut words: Vec<OsString> = self.words.iter().map(OsString::from).collect();
        words[0] = driver.into();
        let mut recovery = recover::command::Command::here(&words).expect("words");
        recovery.dir = self.folder.path().canonicalize().expect("a folder");
        let tables = self.reader.tables();
        Runner::new(RecoveryPlan {
            recovery,
            checker: None,
            oracle: Oracle::default(),
            limits: Limits::default(),
            pools: tables.pools.iter().map(|pool| (pool.info.path.clone().into(), pool.info.len)).collect(),
            engine: EngineChoice::ForkServer,
            names: tables.paths.clone(),
            folders: Vec::new(),
            operations: Some(Arc::clone(&self.operations)),
            served: None,
            cancel: Default::default(),
            real_time: false,
        })
        .expect("a runner")
    }

    /// A runner with rows of commands, and one that lets a driver start them: by this name it is not recognised.
    fn runners(&self) -> [Runner; 2] {
        let unknown = self.folder.path().join("unknown");
        std::os::unix::fs::symlink(OWN, &unknown).expect("writable");
        let mut runners = [self.runner(Path::new(OWN)), self.runner(&unknown)];
        let reference = |runner: &mut Runner| {
            reference_answers(&self.reader, Rules::default(), &self.operations, runner, &|_| true)
        };
        let expected = runners.each_mut().map(|runner| reference(runner).expect("right answers").equivalence);
        let [one, other] = expected.each_ref().map(|equivalence| format!("{:?}", equivalence.expected));
        assert_eq!(one, other);
        let [equivalence, _] = expected.map(Arc::new);
        runners.iter_mut().for_each(|runner| runner.equivalence = Some(Arc::clone(&equivalence)));
        runners
    }
}

/// What a comparison went through.
struct Compared {
    /// Answers that told of a signal.
    died: usize,
    /// Commands that were not run, because their effect was known.
    known: u64,
}

/// Runs states before every `step`th event both ways, and compares.
fn same_as_a_driver(recorded: &Recorded, step: usize) -> Compared {
    let [mut row, mut driver] = recorded.runners();
    let mut walk = Walk::new(&recorded.reader, Rules::default()).expect("a walk");
    let mut died = 0;
    for at in (1..=recorded.reader.event_count()).step_by(step) {
        walk.advance_to(EventId(at)).expect("an event");
        let view = walk.view();
        for assignment in [Assignment::everything(&view), Assignment::guaranteed(&view)] {
            let image = view.image(&assignment.state(&view)).expect("an image");
            let (one, other) = (row.observe(&image).expect("a row"), driver.observe(&image).expect("a run"));
            assert_eq!(one.verdict, other.verdict, "before event {at}");
            let (one, other) = (row.last().expect("a run"), driver.last().expect("a run"));
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(text(&one.stdout), text(&other.stdout), "before event {at}");
            assert_eq!((&one.boundaries, &one.end), (&other.boundaries, &other.end), "before event {at}");
            if text(&one.stdout).contains("signal 11") {
                died += 1;
                assert!(!row.broke_down_at().is_empty(), "before event {at}");
            }
        }
    }
    assert!(row.refused.is_none() && driver.refused.is_none());
    assert_eq!(driver.known_commands(), 0);
    Compared { died, known: row.known_commands() }
}

#[test]
fn rows_of_commands_are_what_a_driver_does() {
    let operations = "put 1 11\nput 2 22\nfail 2\nput 1 12\ndie 1\nsum\n";
    let compared = same_as_a_driver(&Recorded::new(operations, "get 1\n"), 5);
    assert!(compared.died > 0 && compared.known > 0, "{} died, {} known", compared.died, compared.known);
}

/// What a command has changed is not taken for what it saw there, even if the run is the first to look at that page.
#[test]
fn commands_that_look_at_one_line_and_change_another() {
    let operations = "put 1 1\nbump 1\nbump 1\nput 2 2\nbump 2\ncount\n";
    assert!(same_as_a_driver(&Recorded::new(operations, "count\n"), 1).known > 0);
}

#[test]
fn commands_may_grow_the_pool() {
    let operations = "put 1 1\ngrow\nsize\nput 2 2\ngrow\nsum\n";
    same_as_a_driver(&Recorded::new(operations, "size\n"), 2);
}

/// More command lines than servers wait at a time.
#[test]
fn there_may_be_more_commands_than_servers() {
    let operations: String = (0..60).map(|number| format!("put {} {number}\n", number % 16)).collect();
    assert!(same_as_a_driver(&Recorded::new(&operations, "sum\ncount\n"), 45).known > 0);
}

/// A command that changes a file outside the pools is run in every recovery; what the others do is known.
#[test]
fn commands_that_change_other_files_are_run_every_time() {
    let elsewhere = tempfile::tempdir().expect("writable");
    let log = elsewhere.path().join("log");
    fs::write(&log, "").expect("writable");
    let operations = format!("put 1 1\nput 2 2\nappend {}\nsum\n", log.display());
    let recorded = Recorded::new(&operations, "sum\n");
    let [mut row, _] = recorded.runners();
    let mut walk = Walk::new(&recorded.reader, Rules::default()).expect("a walk");
    let appended = || fs::metadata(&log).expect("there").len();
    let mut at = EventId(1);
    while row.position_at(at).is_some_and(|position| position.next() < 2) {
        at = EventId(at.0 + 1);
    }
    walk.advance_to(at).expect("an event");
    let view = walk.view();
    let image = view.image(&Assignment::everything(&view).state(&view)).expect("an image");
    let known = [0; 3].map(|_| {
        let (lines, known) = (appended(), row.known_commands());
        assert!(row.observe(&image).expect("a row").verdict.is_pass());
        assert_eq!(appended(), lines + 1);
        row.known_commands() - known
    });
    assert!(known[1] > 0 && known[1] == known[2], "{known:?}");
}

fn clean(operations: &str, more: &[&str]) {
    let sandbox = Sandbox::new();
    tally(&sandbox.path(""));
    fs::write(sandbox.path("ops"), operations).expect("writable");
    let quick = ["check", "--no-lint", "--jobs", "1", "--strategy", "program-order,guaranteed-only", "--ops", "ops"];
    let ran = sandbox.run_limited(&[&quick, more, &["--op-command", "./tally p {op}"]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("nothing found") && !ran.err.contains("not deterministic"), "{}{}", ran.out, ran.err);
}

/// libpmemobj looks at the length of its pool, and changes lines that it has not read.
#[test]
fn commands_of_a_library_do_the_same_twice() {
    let sandbox = Sandbox::new();
    let example = EXAMPLES.iter().find(|example| example.name == "btree").expect("it is in the list");
    let btree = example.build(&sandbox.path("")).expect("the examples of libpmemobj-dev are there");
    fs::write(sandbox.path("ops"), "i 1 a\nf 1\ni 2 b\np\n").expect("writable");
    let command = format!("{} pool {{op}}", btree.display());
    let quick = ["check", "--no-lint", "--strategy", "program-order,guaranteed-only", "--ops", "ops", "--op-command"];
    let ran = sandbox.run_limited(&[&quick[..], &[&command]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(!ran.err.contains("not deterministic") && !ran.out.contains("not deterministic"), "{}{}", ran.out, ran.err);
    // What a command does to a state is known after the first time: far fewer runs than states.
    let number = |word: &str| {
        let before = ran.out.split(word).next().unwrap_or_default().trim_end();
        before.rsplit(' ').next().and_then(|number| number.parse::<u32>().ok()).expect("it is in the summary")
    };
    assert!(number(" recovery runs") * 2 < number(" states"), "{}", ran.out);
}

/// Processes that meet in other files than the pools are not run apart from each other.
#[test]
fn files_of_one_command_are_there_for_the_next() {
    clean("put 1 1\nmark\nmarked\nput 2 2\nmarked\nsum\n", &[]);
}

/// The clock and random numbers of commands differ, as they do natively.
#[test]
fn two_commands_do_not_draw_the_same() {
    clean("draw\ndraw\nput 1 1\ndraw\nget 1\n", &[]);
}

/// Without taking states for each other, and with a command before the first: the same.
#[test]
fn every_command_is_run_where_that_is_asked_for() {
    clean("put 1 1\nput 2 2\nget 1\n", &["--no-equivalence", "--recover", "./tally p sum"]);
}

/// Nobody can clean up after `kill -9`: the next run does.
#[test]
fn what_a_killed_check_left_is_removed_by_the_next() {
    let sandbox = Sandbox::new();
    tally(&sandbox.path(""));
    let temporary = sandbox.path("temporary");
    fs::create_dir(&temporary).expect("writable");
    // The command waits for somebody who reads.
    assert!(Command::new("mkfifo").arg(sandbox.path("never")).status().expect("mkfifo is installed").success());
    let check = |operations: &str| {
        fs::write(sandbox.path("ops"), operations).expect("writable");
        let line = ["check", "--no-lint", "--jobs", "1", "--strategy", "program-order", "--ops", "ops"];
        let mut command = sandbox.command(&[&line[..], &["--op-command", "./tally p {op}"]].concat());
        command.env("TMPDIR", &temporary).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let left = || -> Vec<PathBuf> {
        fs::read_dir(&temporary).expect("readable").map(|entry| entry.expect("readable").path()).collect()
    };
    let mut killed = check("put 1 1\nappend never\n").spawn().expect("it starts");
    while !left().iter().any(|folder| folder.join("lock").exists()) {
        assert!(killed.try_wait().expect("a child").is_none());
        std::thread::yield_now();
    }
    killed.kill().expect("it lives");
    killed.wait().expect("a child");
    let folders = left();
    assert!(!folders.is_empty());
    // Those that it had started end a moment later.
    for folder in &folders {
        File::open(folder.join("lock")).expect("a lock").lock().expect("nobody has it");
    }
    assert!(check("put 1 1\nsum\n").status().expect("it starts").success());
    assert_eq!(left(), Vec::<PathBuf>::new());
}

/// Where there is no room, that is said, it is no failure of the program, and nothing stays.
#[test]
fn no_room_for_commands() {
    let sandbox = Sandbox::new();
    tally(&sandbox.path(""));
    fs::write(sandbox.path("ops"), "put 1 1\nput 2 2\nsum\n").expect("writable");
    // Beside what is mounted: a pool in a folder that others are mounted beneath has no private one.
    for folder in ["small", "pools"] {
        fs::create_dir(sandbox.path(folder)).expect("writable");
    }
    let full = |fill: &str| {
        let mount = "mount -t tmpfs -o size=4k tmpfs /dev/shm && mount -t tmpfs -o size=4k tmpfs small";
        let script = format!("{mount} && {fill}; \"$@\"; code=$?; echo left $(ls -A /dev/shm small); exit $code");
        let line = ["check", "--no-lint", "--jobs", "1", "--ops", "ops", "--op-command", "./tally pools/p {op}"];
        let fencepost = sandbox.command(&line);
        let mut command = Command::new("unshare");
        command.args(["-r", "-m", "sh", "-c", &script, "sh"]).arg(fencepost.get_program()).args(fencepost.get_args());
        command.current_dir(sandbox.path("")).env("TMPDIR", sandbox.path("small"));
        Ran::from(command.output().expect("unshare is installed"))
    };
    let ran = full("true");
    if ["unshare: ", "mount: "].iter().any(|who| ran.err.starts_with(who)) {
        return targets::skip("no mount namespace for a small file system");
    }
    ran.expect(2, &["private copy of the pool", "No space left on device", "is there room in /dev/shm or TMPDIR?"]);
    assert!(ran.out.contains("left /dev/shm: small:\n"), "{}", ran.out);
    let ran = full("head -c 4096 /dev/zero > small/filled");
    ran.expect(3, &["cannot write the trace", "No space left on device"]);
    // The trace went with its folder.
    assert!(!ran.err.contains("recorded until then"), "{}", ran.err);
    assert!(ran.out.contains("left /dev/shm: small: filled\n"), "{}", ran.out);
}

/// PMDK's tree of numbers, one process per operation, its pool in a folder of its own. `mounts`: what a shell does first.
fn a_tree_after(mounts: &str) -> Option<Ran> {
    let sandbox = Sandbox::new();
    let example = EXAMPLES.iter().find(|example| example.name == "btree").expect("it is in the list");
    let btree = example.build(&sandbox.path("")).expect("the examples of libpmemobj-dev are there");
    fs::write(sandbox.path("ops"), "i 1 a\ni 2 b\n").expect("writable");
    for folder in ["pools", "pools/beneath", "small"] {
        fs::create_dir(sandbox.path(folder)).expect("writable");
    }
    let command = format!("{} pools/p {{op}}", btree.display());
    let quick = ["check", "--no-lint", "--jobs", "1", "--strategy", "program-order", "--ops", "ops", "--op-command"];
    let fencepost = sandbox.command(&[&quick[..], &[&command]].concat());
    let mut line = Command::new("unshare");
    line.args(["-r", "-m", "sh", "-c", &format!("{mounts} && exec \"$@\""), "sh"]).arg(fencepost.get_program());
    line.args(fencepost.get_args()).current_dir(sandbox.path("")).env("TMPDIR", sandbox.path("small"));
    let ran = Ran::from(line.output().expect("unshare is installed"));
    let refused = ["unshare: ", "mount: "].iter().any(|who| ran.err.starts_with(who));
    (!refused).then_some(ran)
}

/// libpmemobj reserves its whole pool. Where there is less room than that, it fails, or is killed, and gives back what it took.
#[test]
fn a_library_that_is_refused_its_whole_pool() {
    let with_room = |size: &str| {
        a_tree_after(&format!(
            "mount -t tmpfs -o size={size} tmpfs /dev/shm && mount -t tmpfs -o size={size} tmpfs small"
        ))
    };
    for size in ["1m", "3m", "7m"] {
        let Some(ran) = with_room(size) else { return targets::skip("no mount namespace for a small file system") };
        ran.expect(2, &["private copy of the pool", "No space left on device", "is there room in /dev/shm or TMPDIR?"]);
        assert!(!ran.err.contains("not deterministic"), "{size}: {}", ran.err);
    }
    let enough = with_room("32m").expect("as before");
    assert_eq!(enough.code, Some(0), "{}{}", enough.out, enough.err);
}

/// No private folder is possible there. The pool's file is there from the recording, and a command that looks for it must not find it before it
/// has made it.
#[test]
fn a_file_system_beneath_the_folder_of_a_pool_that_is_not_there_yet() {
    let Some(ran) = a_tree_after("mount -t tmpfs tmpfs pools/beneath") else {
        return targets::skip("no mount namespace for a file system");
    };
    let told = ["pools/p as it was before it was made", "other file systems are mounted beneath the directory"];
    ran.expect(2, &told);
    assert!(!ran.err.contains("not deterministic"), "{}", ran.err);
}
