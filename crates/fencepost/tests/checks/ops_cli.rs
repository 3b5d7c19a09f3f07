//! Operations that come otherwise than on standard input, and what is said about programs and workloads that cannot be
//! judged by their answers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::cli_support::{Ran, Sandbox};

const OPERATIONS: &str = "put 1 11\nput 2 22\nget 1\nput 1 12\nsum\n";
const TAIL: &str = "get 1\nget 2\nsum\n";

/// `cells.c`, the right one and the one with a bug, built once per test binary.
fn cells(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cells-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("writable");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/cells.c");
        let marks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../marks");
        for (name, flags) in [("right", &[][..]), ("bug", &["-DBUG"])] {
            let mut cc = Command::new("cc");
            cc.args(["-O1", "-g", "-DMARKS", "-I"])
                .arg(&marks)
                .args(flags)
                .arg("-o")
                .arg(folder.join(name))
                .arg(&source);
            assert!(cc.status().expect("cc is installed").success());
        }
        folder
    });
    folder.join(name)
}

/// A sandbox with both programs, operations and a readback.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["right", "bug"] {
        std::os::unix::fs::symlink(cells(name), sandbox.path(name)).expect("writable");
    }
    fs::write(sandbox.path("ops"), OPERATIONS).expect("writable");
    fs::write(sandbox.path("readback"), TAIL).expect("writable");
    sandbox
}

/// `fencepost check`, one recovery at a time.
fn check(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    // Without inference, which would follow every instruction of the drivers as well.
    let quick = ["check", "--no-lint", "--jobs", "1", "--strategy", "program-order,guaranteed-only,visible:64"];
    sandbox.run_limited(&[&quick, arguments].concat())
}

/// With operations and readback.
fn fed(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    check(sandbox, &[&["--ops", "ops", "--readback", "readback"], arguments].concat())
}

#[track_caller]
fn assert_the_bug(ran: &Ran) {
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("`cell->value` in `put`") && ran.out.contains("returned `0"), "{}", ran.out);
}

#[test]
fn one_process_per_operation() {
    let sandbox = sandbox();
    let right = fed(&sandbox, &["--op-command", "./right p do {op}"]);
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    // Processes one after the other do not interleave, and each reads the pool though at the end there is none.
    for wrong in ["threads stored to PM", "reads nothing of"] {
        assert!(!right.err.contains(wrong) && !right.out.contains(wrong), "{}{}", right.out, right.err);
    }
    assert_the_bug(&fed(&sandbox, &["--op-command", "./bug q do {op}"]));
}

#[test]
fn a_command_before_the_first_operation() {
    let sandbox = sandbox();
    // What it says is no answer.
    let right = fed(&sandbox, &["--recover", "./right p do sum", "--op-command", "./right p do {op}"]);
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    let failing = fed(&sandbox, &["--recover", "./right /no/pool do sum", "--op-command", "./right q do {op}"]);
    failing.golden("command-before-operations-fails");
}

#[test]
fn a_server_at_a_port() {
    let sandbox = sandbox();
    let right = fed(&sandbox, &["--op-socket", "127.0.0.1:{port}", "--", "./right", "p", "serve", "{port}"]);
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
}

#[test]
fn a_server_at_a_path() {
    let sandbox = sandbox();
    let ran = fed(&sandbox, &["--op-socket", "{socket}", "--", "./bug", "p", "serve", "{socket}"]);
    assert_the_bug(&ran);
    // The place of a server is not taken for a file of the program.
    assert!(!ran.err.contains("outside of the folders"), "{}", ran.err);
}

/// A run that fails where there is no room says nothing about the server.
#[test]
fn a_server_on_a_full_disk() {
    let sandbox = sandbox();
    fs::create_dir(sandbox.path("small")).expect("writable");
    let on_small_disks = |before: &str| {
        let mounts = "mount -t tmpfs -o size=4k tmpfs /dev/shm && mount -t tmpfs -o size=4k tmpfs small";
        let script = format!("{mounts} && {before}; \"$@\"; code=$?; echo left $(ls -A /dev/shm small); exit $code");
        let options = ["check", "--no-lint", "--jobs", "1", "--strategy", "program-order,guaranteed-only,visible:64"];
        let server = ["--op-socket", "{socket}", "--", "./bug", "p", "serve", "{socket}"];
        let fencepost = sandbox.command(&[&options[..], &["--ops", "ops", "--readback", "readback"], &server].concat());
        let mut command = Command::new("unshare");
        command.args(["-r", "-m", "sh", "-c", &script, "sh"]).arg(fencepost.get_program()).args(fencepost.get_args());
        command.current_dir(sandbox.path("")).env("TMPDIR", sandbox.path("small"));
        Ran::from(command.output().expect("unshare is installed"))
    };
    let ran = on_small_disks("true");
    if ["unshare: ", "mount: "].iter().any(|who| ran.err.starts_with(who)) {
        return targets::skip("no mount namespace for a small file system");
    }
    ran.expect(2, &["private copy of the pool", "No space left on device", "is there room in /dev/shm or TMPDIR?"]);
    assert!(ran.out.contains("left /dev/shm: small:\n"), "{}", ran.out);
    let ran = on_small_disks("head -c 4096 /dev/zero > small/filled");
    ran.expect(3, &["cannot write the trace", "No space left on device"]);
    assert!(ran.out.contains("left /dev/shm: small: filled\n"), "{}", ran.out);
}

/// A sandbox with this program of `tests/programs`.
fn with_program(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let built = Command::new("cc").args(["-O1", "-g", "-o"]).arg(sandbox.path(name)).arg(source).status();
    assert!(built.expect("cc is installed").success());
    sandbox
}

#[test]
fn operations_without_which_the_program_fails_by_itself_are_counted() {
    let sandbox = with_program("needs");
    fs::write(sandbox.path("ops"), "open\nput 1\nget\nput 2\nget\n").expect("writable");
    let ran = check(&sandbox, &["--timeout", "3s", "--ops", "ops", "--", "./needs", "p"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains("without 1 operation the program fails by itself"), "{said}");
}

/// `fragile.c` in a sandbox, with these operations.
fn fragile(operations: &str) -> (Sandbox, Ran) {
    let sandbox = with_program("fragile");
    fs::write(sandbox.path("ops"), operations).expect("writable");
    let ran = check(&sandbox, &["--ops", "ops", "--op-socket", "{socket}", "--", "./fragile", "p", "{socket}"]);
    (sandbox, ran)
}

#[test]
fn what_a_driver_says_reaches_the_user() {
    let (_, closed) = fragile("put 1\nclose\nget\n");
    closed.expect(3, &["the server closed the connection instead of answering `close`", "2 of 3 operations"]);
    let (_, died) = fragile("put 1\ndie\nget\n");
    died.expect(3, &["the server ended (signal 6) instead of answering `die`", "was killed by signal 6"]);
}

/// Where it was is known of the process that died, not of the driver: its own frames are not shown.
#[test]
fn a_signal_under_a_driver_is_that_signal() {
    let (_, ran) = fragile("put 1\nget\nput 2\nget\n");
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("the program was killed by SIGSEGV"), "{}", ran.out);
    assert!(!ran.out.contains("139") && !ran.out.contains("end_by"), "{}", ran.out);
}

/// The commands of a program that reads the file itself, with these words at their ends.
fn own(program: &str, more: &str) -> [String; 4] {
    let command = |rest: &str| format!("./{program} {{pool}} file ops {rest}{more}");
    ["--resume".into(), command("start {next}"), "--without".into(), command("skip {k}")]
}

fn reads_itself(sandbox: &Sandbox, program: &str, options: &[&str], more: &str) -> Ran {
    let own = own(program, more);
    let target = format!("./{program}");
    let mut arguments: Vec<&str> = options.to_vec();
    arguments.extend(own.iter().map(String::as_str));
    arguments.extend(["--", &target, "p", "file", "ops"]);
    arguments.extend(more.split_whitespace());
    let _ = fs::remove_file(sandbox.path("p"));
    check(sandbox, &arguments)
}

#[test]
fn a_driver_that_reads_a_file_itself() {
    let sandbox = sandbox();
    let right = reads_itself(&sandbox, "right", &["--op-begin", "operate"], "");
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    assert_eq!(right.err, "", "{}", right.out);
    assert_the_bug(&reads_itself(&sandbox, "bug", &["--op-begin", "operate"], ""));
}

/// A program that goes on from an operation is started once per position of the crash, and forked for every crash state.
#[test]
fn recoveries_that_go_on_from_an_operation_are_forks() {
    let sandbox = sandbox();
    let elsewhere = tempfile::tempdir().expect("writable");
    let starts = elsewhere.path().join("starts");
    fs::write(&starts, "").expect("writable");
    let own = own("right", "");
    let mut line = vec!["check", "--no-lint", "--jobs", "1", "--budget", "none", "--no-equivalence"];
    line.extend(["--strategy", "random:1:40", "--op-begin", "operate"]);
    line.extend(own.iter().map(String::as_str));
    line.extend(["--", "./right", "p", "file", "ops"]);
    let ran = Ran::from(sandbox.command(&line).env("CELLS_STARTS", &starts).output().expect("it starts"));
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let runs = ran.out.split(" recovery runs").next().and_then(|before| before.rsplit(' ').next());
    let runs: u64 = runs.expect("a number").replace(',', "").parse().expect("a number");
    let starts = fs::metadata(&starts).expect("there").len();
    assert!(starts > 0 && starts * 4 < runs, "{starts} starts, {runs} recovery runs");
}

#[test]
fn operations_that_are_marked() {
    let sandbox = sandbox();
    let found = reads_itself(&sandbox, "bug", &["--op-marks", "--ops", "ops"], "");
    assert_the_bug(&found);
    assert!(found.out.contains("operation 0 (`put 1 11`)"), "{}", found.out);
}

#[test]
fn answers_in_a_file() {
    let sandbox = sandbox();
    let boundaries = ["--op-begin", "begin_operation", "--op-end", "end_operation", "--answers"];
    let right = reads_itself(&sandbox, "right", &[&boundaries[..], &["{answers}"]].concat(), " answers {answers}");
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    let found = reads_itself(&sandbox, "bug", &[&boundaries[..], &["told"]].concat(), " answers told");
    assert_the_bug(&found);
    let id = found.out.split("fencepost replay ").nth(1).and_then(|rest| rest.split('`').next()).expect("a command");
    sandbox.run(&["replay", id]).expect(1, &["reproduced"]);
}

#[test]
fn drivers_that_cannot_resume() {
    let sandbox = sandbox();
    let said = |arguments: &[&str], name: &str| {
        check(&sandbox, &[arguments, &["--", "./right", "p", "file", "ops"]].concat()).golden(name);
    };
    let [resume, resumes, without, skips] = own("right", "");
    said(&["--op-begin", "operate"], "op-begin-without-resume");
    said(&["--op-marks", &resume, &resumes], "op-marks-without-without");
    for alone in ["resume", "without", "answers", "op-end"] {
        said(&[&format!("--{alone}"), "x"], &format!("{alone}-without-op-begin"));
    }
    said(&["--op-begin", "no_such", &resume, &resumes, &without, &skips], "no-such-op-begin");
    let leaves_nothing_out = "./right {pool} file ops";
    said(&["--op-begin", "operate", &resume, &resumes, &without, leaves_nothing_out], "without-leaves-nothing-out");
    fs::write(sandbox.path("two"), "put\nget\n").expect("writable");
    let fewer = ["--op-begin", "operate", "--ops", "two", &resume, &resumes, &without, &skips];
    said(&fewer, "fewer-lines-than-operations");
}

#[test]
fn programs_that_cannot_be_judged() {
    let sandbox = sandbox();
    for (how, name) in [
        ("mute", "answers-nothing"),
        ("late", "answers-late"),
        ("ahead", "reads-ahead"),
        ("dies", "dies-without-a-crash"),
        ("fails", "fails-without-a-crash"),
        ("stops", "stops-reading"),
        ("deaf", "reads-no-operations"),
    ] {
        let _ = fs::remove_file(sandbox.path("p"));
        fed(&sandbox, &["--", "./right", "p", how]).golden(name);
    }
}

#[test]
fn the_plain_engine_compares_whole_outputs() {
    let sandbox = sandbox();
    let right = fed(&sandbox, &["--engine", "native", "--", "./right", "p", "stdin"]);
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    let bug = fed(&sandbox, &["--engine", "native", "--", "./bug", "q", "stdin"]);
    assert_eq!(bug.code, Some(1), "{}{}", bug.out, bug.err);
    assert!(
        bug.out.contains("`cell->value` in `put`") && bug.out.contains("what no run without a crash returns"),
        "{}",
        bug.out
    );
    let varies = fed(&sandbox, &["--engine", "native", "--", "./right", "r", "varies"]);
    without_numbers(varies).golden("plain-engine-answers-vary");
    let windows = ["--window-separator", "||", "--engine", "native", "--", "./right", "s", "stdin"];
    fs::write(sandbox.path("ops"), "put 1 11 || put 2 22\n").expect("writable");
    fed(&sandbox, &windows).golden("plain-engine-with-windows");
}

/// The answers that vary are numbers.
fn without_numbers(ran: Ran) -> Ran {
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let parts = ran.err.split('`').map(|part| if is_number(part) { "[number]" } else { part });
    Ran { err: parts.collect::<Vec<_>>().join("`"), ..ran }
}

#[test]
fn answers_that_vary() {
    without_numbers(fed(&sandbox(), &["--", "./right", "p", "varies"])).golden("answers-vary");
}

#[test]
fn workloads_that_are_none() {
    let sandbox = sandbox();
    let said = |options: &[&str], name: &str| {
        check(&sandbox, &[options, &["--", "./right", "p", "stdin"]].concat()).golden(name);
    };
    fs::write(sandbox.path("empty.txt"), "").expect("writable");
    fs::write(sandbox.path("many"), "get 1\n".repeat(70_000)).expect("writable");
    fs::write(sandbox.path("hole"), "[operations]\nput = \"put {kee} 1\"\n").expect("writable");
    fs::write(sandbox.path("keys"), "[operations]\nget = \"get {key}\"\n").expect("writable");
    said(&["--ops", "none"], "no-operations-file");
    said(&["--ops", "empty.txt"], "no-operations");
    said(&["--ops", "ops", "--readback", "many"], "too-many-operations");
    said(&["--ops", "ops", "--readback", "none"], "no-readback-file");
    said(&["--grammar", "none"], "no-grammar-file");
    said(&["--grammar", "hole"], "grammar-with-an-unknown-hole");
    said(&["--grammar", "keys"], "grammar-without-an-insert");
}

#[test]
fn drivers_that_cannot_be() {
    let sandbox = sandbox();
    let said = |arguments: &[&str], name: &str| check(&sandbox, arguments).golden(name);
    said(&["--op-command", "./right p do {op}"], "op-command-without-operations");
    said(&["--ops", "ops", "--op-command", "./right p do"], "op-command-without-a-place");
    said(&["--ops", "ops", "--op-command", "./none {op}"], "op-command-not-found");
    said(&["--ops", "ops", "--op-command", "./right {op}", "--", "./right"], "op-command-and-a-program");
    let nowhere = ["--ops", "ops", "--op-socket", "socket", "--", "./right", "p", "serve", "socket"];
    said(&nowhere, "no-place-for-a-socket");
}

#[test]
fn a_server_that_never_listens() {
    let ran = fed(&sandbox(), &["--op-socket", "{socket}", "--", "./right", "p", "do", "put", "1", "1"]);
    ran.golden("server-never-listens");
}

/// The same program, with operations on its standard input of which nobody tells fencepost.
#[test]
fn recovery_alone_misses_the_bug_and_the_summary_says_so() {
    let sandbox = sandbox();
    let alone = |format: &str| {
        let line = ["check", "--no-lint", "--message-format", format, "--", "./bug", "p", "stdin"];
        let ops = fs::File::open(sandbox.path("ops")).expect("written");
        let _ = fs::remove_file(sandbox.path("p"));
        let ran: Ran = sandbox.command(&line).stdin(ops).output().expect("fencepost starts").into();
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        ran.out
    };
    let words = "answers to operations were not compared, only the recovery's verdict was checked (--ops";
    let human = alone("human");
    assert!(human.contains(words) && human.contains("nothing found"), "{human}");
    let junit = alone("junit").replace("&apos;", "'");
    assert!(junit.contains(words), "{junit}");
    assert!(alone("sarif").contains(words));
    assert!(alone("json").contains(r#""oracles":["recovery"]"#));
    let fed = fed(&sandbox, &["--message-format", "json", "--", "./right", "q", "stdin"]);
    assert!(fed.out.contains(r#""oracles":["recovery","answers"]"#), "{}{}", fed.out, fed.err);
}
