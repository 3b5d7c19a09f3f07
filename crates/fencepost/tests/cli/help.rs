//! What users see first: the help of every command, the version, colours, and suggestions for what was mistyped.
//!
//! After a change that is meant: `INSTA_UPDATE=always cargo test -p fencepost --test cli help::`, and look at the difference.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::path::Path;
use std::ptr;

use crate::cli_support::{Ran, Sandbox};

/// What clap takes if there is no terminal.
const WIDTH: usize = 100;

/// Commands with more options than `--help` shows.
const LARGE: [&str; 7] = ["record", "check", "lint", "crash", "fuzz", "explore", "fs check"];

fn help(sandbox: &Sandbox, command: &[String], option: &str) -> String {
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    arguments.push(option);
    let mut fencepost = sandbox.command(&arguments);
    let ran: Ran = fencepost.env("COLUMNS", WIDTH.to_string()).output().expect("fencepost starts").into();
    ran.expect(0, &[]);
    ran.out
}

/// The names below `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let section = help.split("\nCommands:\n").nth(1).unwrap_or_default().lines().take_while(|line| !line.is_empty());
    let names = section.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Every command with its help, the commands of commands as well.
fn all() -> Vec<(Vec<String>, String)> {
    let sandbox = Sandbox::new();
    let mut found = Vec::new();
    let mut waiting: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(command) = waiting.pop() {
        let text = help(&sandbox, &command, "--help");
        waiting.extend(subcommands(&text).into_iter().map(|name| [&command[..], &[name]].concat()));
        found.push((command, text));
    }
    found
}

#[test]
fn the_help_of_every_command() {
    let mut names = BTreeSet::new();
    for (command, text) in all() {
        let name = [&["fencepost".to_owned()][..], &command].concat().join("-");
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name.as_str(), text);
        });
        names.insert(format!("{name}.snap"));
    }
    for command in LARGE {
        let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let name = [&["fencepost".to_owned()][..], &command, &["all".to_owned()]].concat().join("-");
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name.as_str(), help(&Sandbox::new(), &command, "--help-all"));
        });
        names.insert(format!("{name}.snap"));
    }
    assert!(names.len() >= 16, "{names:?}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots");
    let files = fs::read_dir(folder).expect("readable").flatten().map(|entry| entry.file_name());
    let files: BTreeSet<String> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    assert_eq!(files, names, "left over from a command that is gone, or missing");
}

#[test]
fn every_help_teaches_by_an_example() {
    for (command, text) in all() {
        assert!(text.contains("\nExamples:\n  "), "fencepost {} --help has no example", command.join(" "));
    }
}

/// Lines of a help text that name an option.
fn options(help: &str) -> Vec<&str> {
    help.lines().map(str::trim_start).filter(|line| line.starts_with("--") || line.starts_with('-')).collect()
}

#[test]
fn the_help_of_check_shows_ten_options_and_help_all_every_one_in_a_group() {
    let sandbox = Sandbox::new();
    for command in LARGE {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let short = help(&sandbox, &words, "--help");
        let all = help(&sandbox, &words, "--help-all");
        // `--help` and `--help-all` themselves are not counted.
        let shown = options(&short).len() - 2;
        assert!(shown <= 11 && (command != "check" || shown == 10), "fencepost {command} --help shows {shown} options");
        assert!(options(&all).len() > shown + 2, "fencepost {command} --help-all shows no more than --help");
        assert!(!all.contains("\nOptions:\n"), "an option of fencepost {command} is in no group of help.rs:\n{all}");
    }
}

/// A configuration and the environment set options, not whether help is printed.
#[test]
fn help_and_version_cannot_be_configured() {
    let sandbox = Sandbox::new();
    let mut fencepost = sandbox.command(&["lint", "nothing.fptrace"]);
    fencepost.env("FENCEPOST_HELP", "true").env("FENCEPOST_HELP_ALL", "true").env("FENCEPOST_VERSION", "1");
    let ran: Ran = fencepost.output().expect("fencepost starts").into();
    ran.expect(2, &["nothing.fptrace"]);
}

/// Lines that were broken by hand and then by clap look torn.
#[test]
fn what_follows_the_options_fits_the_screen() {
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands")).expect("readable").flatten() {
        let Ok(source) = fs::read_to_string(file.path()) else { continue };
        let Some((_, text)) = source.split_once("const EXAMPLES: &str = \"\\\n") else { continue };
        for line in text.split("\";\n").next().unwrap_or_default().lines() {
            assert!(line.len() <= WIDTH, "{}: too long by {}: {line}", file.path().display(), line.len() - WIDTH);
        }
    }
}

#[test]
fn typing_errors_get_a_suggestion() {
    let sandbox = Sandbox::new();
    for (arguments, name) in [
        (&["chekc"][..], "typo-in-a-command"),
        (&["trace", "dmup"], "typo-in-a-command-of-a-command"),
        (&["record", "--wach", "put", "--", "true"], "typo-in-an-option-with-a-program"),
        (&["check", "--budgte", "1s", "--", "true"], "typo-in-an-option"),
        (&["lint", "--fail-on", "warnings", "x.fptrace"], "typo-in-a-value"),
        (&["explain", "FP0610"], "typo-in-a-rule"),
        (&["explain", "store-not-durabel"], "typo-in-the-name-of-a-rule"),
    ] {
        sandbox.run(arguments).golden(name);
    }
}

#[test]
fn the_version_says_what_was_built() {
    let sandbox = Sandbox::new();
    let version = concat!("fencepost ", env!("CARGO_PKG_VERSION"));
    assert_eq!(sandbox.run(&["-V"]).out, format!("{version}\n"));
    let long = sandbox.run(&["--version"]).out;
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], version);
    for (line, word) in lines[1..].iter().zip(["commit:", "target:", "profile:"]) {
        let (name, value) = line.split_once(' ').unwrap_or_default();
        assert!(name == word && !value.trim().is_empty(), "{long}");
    }
}

/// What a terminal gets on standard error.
fn on_a_terminal(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let (mut master, mut slave) = (-1, -1);
    // SAFETY: the two integers are live; null asks for the defaults.
    let made = unsafe { libc::openpty(&raw mut master, &raw mut slave, ptr::null_mut(), ptr::null(), ptr::null()) };
    assert_eq!(made, 0, "no pseudo-terminal: {}", std::io::Error::last_os_error());
    // SAFETY: `openpty` gave them to us, and nobody else has them.
    let (mut master, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(arguments);
    for name in ["NO_COLOR", "FENCEPOST_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm").envs(variables.iter().copied()).stderr(slave);
    let status = command.status().expect("fencepost starts");
    assert_eq!(status.code(), Some(2));
    // The command holds our end of the terminal; when it is gone, reading ends.
    drop(command);
    let mut text = Vec::new();
    // The end of a terminal is an error (EIO).
    let _ = master.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    const ESCAPE: char = '\x1b';
    let wrong = ["explain", "FP9999"];
    let coloured = |arguments: &[&str], variables: &[(&str, &str)]| {
        let text = on_a_terminal(arguments, variables);
        assert!(text.contains("no rule `FP9999`"), "{text:?}");
        text.contains(ESCAPE)
    };
    assert!(coloured(&wrong, &[]));
    assert!(!coloured(&wrong, &[("NO_COLOR", "1")]));
    assert!(!coloured(&wrong, &[("FENCEPOST_COLOR", "never")]));
    assert!(!coloured(&["--color", "never", "explain", "FP9999"], &[]));
    assert!(coloured(&["--color", "always", "explain", "FP9999"], &[("NO_COLOR", "1")]));
    let piped = Sandbox::new().run(&wrong);
    assert!(!piped.err.contains(ESCAPE), "{:?}", piped.err);
}

#[test]
fn a_program_without_its_dashes_is_recognised() {
    let sandbox = crate::cli_support::Sandbox::new();
    sandbox.run(&["check", "./kv", "pool"]).expect(2, &["write `--` before the program: fencepost check -- ./kv pool"]);
    sandbox.run(&["record", "-o", "t", "./kv"]).expect(2, &["fencepost record -- ./kv"]);
    // A typo in an option is no program.
    let ran = sandbox.run(&["check", "--budgte", "3", "--", "./kv"]);
    assert!(!ran.err.contains("before the program"), "{}", ran.err);
    sandbox.run(&["lint", "/bin/true"]).expect(2, &["write `fencepost lint -- /bin/true`"]);
}

#[test]
fn shells_complete_rules_and_findings() {
    let sandbox = crate::cli_support::Sandbox::new();
    for id in ["1a2b3c4d", "1affffff", "99999999", "last-run"] {
        std::fs::create_dir_all(sandbox.path(".fencepost").join(id)).unwrap();
    }
    let script = sandbox.run(&["completions", "bash"]).out;
    std::fs::write(sandbox.path("completions"), script).unwrap();
    let complete = |words: &str, last: &str| {
        let line = format!(
            "source ./completions; COMP_WORDS=(fencepost {words} '{last}'); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); \
             _fencepost_findings fencepost '{last}' \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let output = std::process::Command::new("bash").args(["-c", &line]).current_dir(sandbox.path(".")).output();
        String::from_utf8_lossy(&output.expect("bash is installed").stdout).trim().to_owned()
    };
    assert_eq!(complete("replay", "1a"), "1a2b3c4d 1affffff");
    assert_eq!(complete("debug", "9"), "99999999");
    assert_eq!(complete("replay", "--bun"), "--bundles");
    assert_eq!(complete("check --allow", "FP010"), "FP0101 FP0102 FP0103 FP0104");
    assert_eq!(complete("explain", "FP020"), "FP0201 FP0202 FP0203 FP0204 FP0205");
}
