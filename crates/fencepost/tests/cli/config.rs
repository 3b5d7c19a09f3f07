//! Where options come from: the command line before the environment before `fencepost.toml` before the defaults.

use std::fs;
use std::path::Path;

use crate::cli_support::{Ran, Sandbox, pool_program};

/// `fencepost lint` on a correct program that flushes with `clflush`, which is an error here, in a folder below the sandbox.
fn lint(sandbox: &Sandbox, arguments: &[&str], fail_on: Option<&str>) -> Ran {
    let program = pool_program().to_str().expect("text");
    let below = sandbox.path("a/b");
    fs::create_dir_all(&below).expect("writable");
    let mut all = vec!["lint"];
    all.extend(arguments);
    all.extend(["--", program, "store", "pool"]);
    let mut command = sandbox.command(&all);
    command.current_dir(below).env("FENCEPOST_DENY", "FP0501");
    if let Some(level) = fail_on {
        command.env("FENCEPOST_FAIL_ON", level);
    }
    command.output().expect("fencepost starts").into()
}

fn write(sandbox: &Sandbox, text: &str) {
    fs::write(sandbox.path("fencepost.toml"), text).expect("writable");
}

#[test]
fn the_command_line_goes_before_the_environment_before_the_file() {
    let sandbox = Sandbox::new();
    assert_eq!(lint(&sandbox, &[], None).code, Some(1), "the default is `error`");
    write(&sandbox, "fail-on = 'never'\n");
    assert_eq!(lint(&sandbox, &[], None).code, Some(0), "the file, found upwards");
    assert_eq!(lint(&sandbox, &[], Some("error")).code, Some(1), "the environment");
    assert_eq!(lint(&sandbox, &["--fail-on", "never"], Some("error")).code, Some(0), "the command line");
    assert_eq!(lint(&sandbox, &[], Some("")).code, Some(0), "an empty variable is none");
    write(&sandbox, "fail-on = 'error'\n[lint]\nfail-on = 'never'\n[check]\nfail-on = 'error'\n");
    assert_eq!(lint(&sandbox, &[], None).code, Some(0), "a command's own section goes before what is for all");
    assert_eq!(lint(&sandbox, &["--config", "/dev/null"], None).code, Some(1), "another file");
}

#[test]
fn options_that_can_be_repeated_add_up() {
    let sandbox = Sandbox::new();
    write(&sandbox, "[lint]\nallow = ['FP0501', 'FP0502']\n[lint.severity]\nFP0301 = 'allow'\n");
    assert_eq!(lint(&sandbox, &[], None).code, Some(1), "the environment denies it");
    // `--deny` comes after `--allow`; a second one does not take the first away.
    let ran = lint(&sandbox, &["--allow", "FP9999"], None);
    ran.expect(2, &["no rule `FP9999`"]);
    write(&sandbox, "[lint]\nallow = ['FP8888']\n");
    lint(&sandbox, &["--allow", "FP0501"], None).expect(2, &["no rule `FP8888`"]);
}

#[test]
fn files_are_found_from_where_the_configuration_is() {
    let sandbox = Sandbox::new();
    write(&sandbox, "suppressions = 'intended.toml'\n");
    lint(&sandbox, &[], None).expect(2, &["cannot read the suppressions file", "intended.toml"]);
    fs::write(sandbox.path("intended.toml"), "[[suppress]]\nrule = 'FP0501'\nreason = 'old processors'\n").unwrap();
    assert_eq!(lint(&sandbox, &[], None).code, Some(0));
}

#[test]
fn mistakes_in_the_file_are_named_with_the_file() {
    let sandbox = Sandbox::new();
    for (text, name) in [
        ("fial-on = 'never'", "config-no-such-option"),
        ("[lint]\nrecover = 'x'", "config-option-of-another-command"),
        ("[check]\nbudegt = '5m'", "config-no-such-option-of-a-command"),
        ("[lnit]\nfail-on = 'note'", "config-no-such-command"),
        ("fail-on = 'bad'", "config-wrong-value"),
        ("fail-on = ['note']", "config-list-where-none-belongs"),
        ("fail-on", "config-that-is-no-toml"),
    ] {
        write(&sandbox, text);
        let ran = lint(&sandbox, &[], None);
        ran.golden(name);
        assert!(ran.err.contains("fencepost.toml: "), "{}", ran.err);
        assert!(!sandbox.path("a/b/pool").exists(), "the program ran");
    }
    lint(&sandbox, &["--config", "none.toml"], None).expect(2, &["cannot read the configuration none.toml"]);
    // Help and explanations are there for those who have a broken configuration.
    for arguments in [&["explain", "FP0101"][..], &["lint", "--help"], &["completions", "bash"]] {
        assert_eq!(sandbox.run(arguments).code, Some(0), "{arguments:?}");
    }
}

#[test]
fn a_check_takes_what_is_said_for_its_parts() {
    let sandbox = Sandbox::new();
    let program = pool_program().to_str().expect("text");
    let check = || sandbox.run(&["check", "--", program, "store", "pool"]);
    write(&sandbox, "[crash]\njobs = 1\nexit-ok = [5]\nrequire-complete = true\n[lint.severity]\nFP0501 = 'error'\n");
    let ran = check();
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("error[FP0501]"), "{}", ran.out);
    write(&sandbox, "exit-ok = [5]\n[lint]\nseverity = ['FP0501=error']\n[check]\nno-lint = true\n");
    assert_eq!(check().code, Some(0));
}

/// The examples of the documentation are accepted as they stand.
#[test]
fn the_examples_of_the_pages_are_right() {
    for page in ["configuration.md", "ci.md", "linting.md"] {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let text = fs::read_to_string(docs.join(page)).expect("there");
        for block in text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            if block.contains("[[suppress]]") {
                continue;
            }
            let sandbox = Sandbox::new();
            write(&sandbox, block);
            fs::create_dir_all(sandbox.path("pm")).expect("writable");
            fs::create_dir_all(sandbox.path("rules")).expect("writable");
            let rule = "fn rule() { #{ id: \"MY0001\", title: \"nothing\", severity: \"error\" } }\nfn fence(e) { }\n";
            for (file, content) in [
                ("suppressions.toml", ""),
                ("pm-suppressions.toml", ""),
                ("pm/suppressions.toml", ""),
                ("pm-baseline.json", "{\"type\":\"summary\"}"),
                ("pm/baseline.json", "{\"type\":\"summary\"}"),
                ("pm/locks.rhai", rule),
                ("rules/mine.rhai", rule),
            ] {
                fs::write(sandbox.path(file), content).expect("writable");
            }
            for command in ["lint", "crash"] {
                let ran = sandbox.run(&[command, "none.fptrace"]);
                ran.expect(2, &["none.fptrace"]);
            }
        }
    }
}
