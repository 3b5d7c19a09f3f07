//! Every exit code, provoked. What else ends so is with the commands' own tests.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::cli_support::deny::Denied;
use crate::cli_support::{Ran, Sandbox, pool_program};

/// A command of fencepost on the program of `tests/programs`.
fn on_pool(sandbox: &Sandbox, arguments: &[&str], act: &str) -> Ran {
    let mut all = arguments.to_vec();
    all.extend(["--", pool_program().to_str().expect("text"), act, "pool"]);
    sandbox.run(&all)
}

#[test]
fn clean_0_and_findings_1() {
    let sandbox = Sandbox::new();
    on_pool(&sandbox, &["check", "--exit-ok", "5"], "store").expect(0, &[]);
    on_pool(&sandbox, &["check", "--exit-ok", "5", "--deny", "FP0501"], "store").expect(1, &[]);
}

#[test]
fn usage_2() {
    let sandbox = Sandbox::new();
    for arguments in [&["check"][..], &["no-such-command"], &["crash", "none.fptrace"], &["record", "--", "./none"]] {
        let ran = sandbox.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains("error: ") && ran.out.is_empty(), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn target_failed_3() {
    // The program ends with 5 after the same run without any crash, too.
    on_pool(&Sandbox::new(), &["check"], "store").expect(3, &["without any power failure", "exit code 5", "--exit-ok"]);
}

#[test]
fn no_activity_4() {
    on_pool(&Sandbox::new(), &["check"], "nothing").expect(4, &["no persistent-memory activity"]);
    // A value is a value, whatever it looks like.
    on_pool(&Sandbox::new(), &["check", "--pm=-weird"], "nothing").expect(4, &["no persistent-memory activity"]);
    // A program that failed is why.
    let failed = Sandbox::new().run(&["check", "--", "/bin/false"]);
    failed.expect(4, &["`/bin/false` exited with 1", "no persistent-memory activity"]);
}

#[test]
fn incomplete_5() {
    let ran = on_pool(&Sandbox::new(), &["check", "--exit-ok", "5", "--budget", "0s", "--require-complete"], "store");
    ran.golden("search-incomplete");
}

/// A thread that cannot be started is a panic of the standard library.
#[test]
fn internal_70() {
    let sandbox = Sandbox::new();
    on_pool(&sandbox, &["record", "--quiet", "-o", "trace"], "store").expect(0, &[]);
    let mut command = sandbox.command(&["crash", "--no-journal", "--exit-ok", "5", "--jobs", "2", "trace"]);
    let (always, thread) = (0, libc::CLONE_THREAD as u32);
    // Without this the C library would ask so that the flags cannot be seen.
    let hidden = Denied { call: libc::SYS_clone3, argument: 0, mask: always, value: always, error: libc::ENOSYS };
    let denied = Denied { call: libc::SYS_clone, argument: 0, mask: thread, value: thread, error: libc::EAGAIN };
    hidden.bind(&mut command);
    denied.bind(&mut command);
    let ran: Ran = command.output().expect("fencepost starts").into();
    // What the standard library says before that is its own affair.
    ran.golden_lines("internal-error", ran.err.lines().filter(|line| line.starts_with("error: ")));
}

#[test]
fn interrupted_130() {
    let sandbox = Sandbox::new();
    let program = pool_program().to_str().expect("text");
    let mut command = sandbox.command(&["check", "--", program, "wait", "pool"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("fencepost starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("readable");
    assert_eq!(line, "ready\n");
    // SAFETY: plain system call; the child has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    assert_eq!(child.wait().expect("waited").code(), Some(130));
}

#[test]
fn the_targets_own() {
    on_pool(&Sandbox::new(), &["record", "--exit-with-target"], "store").expect(5, &[]);
}

/// Nobody can be told, but the code is right.
#[test]
fn a_full_standard_error_changes_nothing() {
    let full = File::options().write(true).open("/dev/full").expect("every Linux has it");
    let status = Sandbox::new().command(&["explain", "FP9999"]).stderr(full).status();
    assert_eq!(status.expect("fencepost starts").code(), Some(2));
}
