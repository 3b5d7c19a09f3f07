//! Operations that come otherwise than on standard input, and what is said about programs and workloads that cannot be
//! judged by their answers.

#[expect(dead_code, reason = "each test binary uses its own part")]
mod cli_support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use cli_support::{Ran, Sandbox};

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

/// A sandbox with both programs, operations and a tail.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["right", "bug"] {
        std::os::unix::fs::symlink(cells(name), sandbox.path(name)).expect("writable");
    }
    fs::write(sandbox.path("ops"), OPERATIONS).expect("writable");
    fs::write(sandbox.path("tail"), TAIL).expect("writable");
    sandbox
}

/// `fencepost check` under `timeout`.
fn check(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    // Without inference, which would follow every instruction of the drivers as well.
    let quick = ["check", "--no-lint", "--jobs", "1", "--strategy", "program-order,guaranteed-only,visible:64"];
    let fencepost = sandbox.command(&[&quick, arguments].concat());
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "170"]).arg(fencepost.get_program()).args(fencepost.get_args());
    command.current_dir(sandbox.path("")).stdin(Stdio::null()).output().expect("timeout starts").into()
}

/// With operations and tail.
fn fed(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    check(sandbox, &[&["--ops", "ops", "--tail", "tail"], arguments].concat())
}

#[track_caller]
fn assert_the_bug(ran: &Ran) {
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("`cell->value` in `put`") && ran.out.contains("is answered `0"), "{}", ran.out);
}

/// What was said, with its advice.
#[track_caller]
fn assert_said(ran: &Ran, code: i32, text: &str) {
    let said: Vec<&str> =
        ran.err.lines().filter(|line| line.starts_with("error") || line.starts_with("help")).collect();
    assert_eq!((ran.code, said.join("\n").as_str()), (Some(code), text), "{}", ran.out);
}

#[test]
fn one_process_per_operation() {
    let sandbox = sandbox();
    let right = fed(&sandbox, &["--op-command", "./right p do {op}"]);
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    assert_the_bug(&fed(&sandbox, &["--op-command", "./bug q do {op}"]));
}

#[test]
fn a_command_before_the_first_operation() {
    let sandbox = sandbox();
    // What it says is no answer.
    let right = fed(&sandbox, &["--recover", "./right p do sum", "--op-command", "./right p do {op}"]);
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    let failing = fed(&sandbox, &["--recover", "./right /no/pool do sum", "--op-command", "./right q do {op}"]);
    assert_said(
        &failing,
        3,
        "error: the program ended with exit code 91 in a run without any crash, after 0 of 8 operations; the last one was `put 1 11`\n\
         help: run it by hand on these operations: it must end with exit code 0",
    );
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
    assert_the_bug(&fed(&sandbox, &["--op-socket", "{socket}", "--", "./bug", "p", "serve", "{socket}"]));
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

#[test]
fn operations_that_are_marked() {
    let sandbox = sandbox();
    let found = reads_itself(&sandbox, "bug", &["--op-marks", "--ops", "ops"], "");
    assert_the_bug(&found);
    assert!(found.out.contains("during operation 0 (`put 1 11`)"), "{}", found.out);
}

#[test]
fn answers_in_a_file() {
    let sandbox = sandbox();
    let borders = ["--op-begin", "begin_operation", "--op-end", "end_operation", "--answers"];
    let right = reads_itself(&sandbox, "right", &[&borders[..], &["{answers}"]].concat(), " answers {answers}");
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    let found = reads_itself(&sandbox, "bug", &[&borders[..], &["told"]].concat(), " answers told");
    assert_the_bug(&found);
    let id = found.out.split("fencepost replay ").nth(1).and_then(|rest| rest.split('`').next()).expect("a command");
    sandbox.run(&["replay", id]).expect(1, &["reproduced"]);
}

#[test]
fn drivers_that_cannot_resume() {
    let sandbox = sandbox();
    let said = |arguments: &[&str], code: i32, text: &str| {
        assert_said(&check(&sandbox, &[arguments, &["--", "./right", "p", "file", "ops"]].concat()), code, text);
    };
    let [resume, resumes, without, skips] = own("right", "");
    said(&["--op-begin", "operate"], 2, "error: --op-begin needs --resume CMD: the program is run after a crash by it");
    said(
        &["--op-marks", &resume, &resumes],
        2,
        "error: --op-marks needs --without CMD: the program is run without an operation by it",
    );
    for alone in ["--resume", "--without", "--answers", "--op-end"] {
        said(
            &[alone, "x"],
            2,
            &format!("error: {alone} needs --op-begin SYMBOL or --op-marks: they say where operations begin"),
        );
    }
    said(
        &["--op-begin", "no_such", &resume, &resumes, &without, &skips],
        2,
        "error: no operation was seen: the program did not call `no_such`; is it the name of a function in it, and was that not \
         inlined?",
    );
    said(
        &["--op-begin", "operate", &resume, &resumes, &without, "./right {pool} file ops"],
        3,
        &format!(
            "error: `./right {} file ops` (exit code 0) wrote 5 lines where 4 operations are to be answered by one line each\n\
             help: run it by hand: without a crash, it must write a line for each operation that it runs, and nothing else",
            fs::canonicalize(sandbox.path("p")).expect("made").display()
        ),
    );
    fs::write(sandbox.path("two"), "put\nget\n").expect("writable");
    said(
        &["--op-begin", "operate", "--ops", "two", &resume, &resumes, &without, &skips],
        2,
        "error: the program began 5 operations, but --ops has 2 lines; operations and lines must be the same",
    );
}

#[test]
fn programs_that_cannot_be_judged() {
    let sandbox = sandbox();
    let said = |how: &str, text: &str| {
        let _ = fs::remove_file(sandbox.path("p"));
        assert_said(&fed(&sandbox, &["--", "./right", "p", how]), 3, text);
    };
    said(
        "mute",
        "error: the program answers nothing: it wrote nothing to its standard output for any of 8 operations\n\
         help: add queries to the operations, or as a tail (--tail): answers are what is compared",
    );
    for out_of_step in ["late", "ahead"] {
        said(
            out_of_step,
            "error: the program answers out of step: it reads on before it has answered (operation 0, `put 1 11`, has no \
             answer, and more is written after the last one); it must write and flush each answer before it reads the \
             next operation\n\
             help: let it flush its output after each answer, and read one line at a time",
        );
    }
    let advice =
        "help: run it by hand on these operations: without a crash it must read all of them and end with exit code 0";
    for (how, ended) in
        [("dies", "was killed by signal 6"), ("fails", "ended with exit code 7"), ("stops", "stopped reading")]
    {
        said(
            how,
            &format!("error: the program read 3 of 5 operations and then {ended}; the last one was `get 1`\n{advice}"),
        );
    }
    said(
        "deaf",
        "error: the program did not read operations from its standard input, one line after the other\n\
         help: a program that takes its operations otherwise needs --op-command, --op-socket or --op-begin",
    );
}

#[test]
fn the_plain_engine_compares_whole_outputs() {
    let sandbox = sandbox();
    let right = fed(&sandbox, &["--engine", "plain", "--", "./right", "p", "stdin"]);
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    let bug = fed(&sandbox, &["--engine", "plain", "--", "./bug", "q", "stdin"]);
    assert_eq!(bug.code, Some(1), "{}{}", bug.out, bug.err);
    assert!(
        bug.out.contains("`cell->value` in `put`") && bug.out.contains("as in any run without a crash"),
        "{}",
        bug.out
    );
    let varies = fed(&sandbox, &["--engine", "plain", "--", "./right", "r", "varies"]);
    varies.expect(3, &["is not deterministic: given the same operations, line 2 of its output is"]);
    let windows = ["--window-separator", "||", "--engine", "plain", "--", "./right", "s", "stdin"];
    fs::write(sandbox.path("ops"), "put 1 11 || put 2 22\n").expect("writable");
    assert_said(
        &fed(&sandbox, &windows),
        3,
        "error: the uninstrumented program does not show which answer belongs to which part of a window\n\
         help: leave out --engine plain: the fork server sees where operations begin and end",
    );
}

#[test]
fn answers_that_vary() {
    let ran = fed(&sandbox(), &["--", "./right", "p", "varies"]);
    ran.expect(3, &["is not deterministic: operation 1, `put 2 22`, is answered", "leave the operation out"]);
}

#[test]
fn workloads_that_are_none() {
    let sandbox = sandbox();
    let target = ["--", "./right", "p", "stdin"];
    let said = |options: &[&str], text: &str| assert_said(&check(&sandbox, &[options, &target].concat()), 2, text);
    fs::write(sandbox.path("empty"), "").expect("writable");
    fs::write(sandbox.path("hole"), "[operations]\nput = \"put {kee} 1\"\n").expect("writable");
    fs::write(sandbox.path("keys"), "[operations]\nget = \"get {key}\"\n").expect("writable");
    said(&["--ops", "none"], "error: cannot read none: No such file or directory (os error 2)");
    said(&["--ops", "empty"], "error: empty: there is not one operation in it; write one per line");
    fs::write(sandbox.path("many"), "get 1\n".repeat(70_000)).expect("writable");
    said(
        &["--ops", "ops", "--tail", "many"],
        "error: ops: 5 operations and 70000 queries are more than the 65535 whose answers can be told apart in one run; give \
         it fewer operations, or a shorter tail",
    );
    said(&["--ops", "ops", "--tail", "none"], "error: cannot read none: No such file or directory (os error 2)");
    said(&["--grammar", "none"], "error: cannot read none: No such file or directory (os error 2)");
    check(&sandbox, &[&["--grammar", "hole"], &target[..]].concat()).golden("grammar-with-an-unknown-hole");
    check(&sandbox, &[&["--grammar", "keys"], &target[..]].concat()).golden("grammar-without-an-insert");
}

#[test]
fn drivers_that_cannot_be() {
    let sandbox = sandbox();
    let said = |arguments: &[&str], text: &str| assert_said(&check(&sandbox, arguments), 2, text);
    said(
        &["--op-command", "./right p do {op}"],
        "error: --op-command needs operations; give them with --ops FILE or --grammar FILE",
    );
    said(
        &["--ops", "ops", "--op-command", "./right p do"],
        "error: --op-command: the command \"./right p do\" has no place for the operation; write {op} where it belongs",
    );
    said(&["--ops", "ops", "--op-command", "./none {op}"], "error: the program `./none` is not found");
    said(
        &["--ops", "ops", "--op-command", "./right {op}", "--", "./right"],
        "error: --op-command is the whole command; leave out what follows --",
    );
    said(
        &["--ops", "ops", "--op-socket", "socket", "--", "./right", "p", "serve", "socket"],
        "error: --op-socket: `socket` is no place for a socket; write 127.0.0.1:{port}, 127.0.0.1:PORT, {socket} or a path with \
         a slash in it",
    );
}

#[test]
fn a_server_that_never_listens() {
    let ran = fed(&sandbox(), &["--op-socket", "{socket}", "--", "./right", "p", "do", "put", "1", "1"]);
    ran.expect(3, &["the server ended (exit 0) before it accepted a connection", "standard input"]);
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
    let words = "answers to operations were not compared, only recovery's verdict was looked at (--ops";
    let human = alone("human");
    assert!(human.contains(words) && human.contains("nothing found"), "{human}");
    let junit = alone("junit").replace("&apos;", "'");
    assert!(junit.contains(words), "{junit}");
    assert!(alone("sarif").contains(words));
    assert!(alone("json").contains(r#""oracles":["recovery"]"#));
    let fed = fed(&sandbox, &["--message-format", "json", "--", "./right", "q", "stdin"]);
    assert!(fed.out.contains(r#""oracles":["recovery","answers"]"#), "{}{}", fed.out, fed.err);
}
