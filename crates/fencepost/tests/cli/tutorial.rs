//! Pages of the documentation, command by command: each ends as the page says, and prints what the page shows.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A block of commands and the lines that the page shows below it.
#[derive(Debug, Default)]
struct Step {
    commands: Vec<String>,
    shown: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block = "";
    for line in page.lines() {
        match (line.strip_prefix("```"), block) {
            (Some(language), "") => {
                block = if language.is_empty() { "other" } else { language };
                if block == "sh" {
                    steps.push(Step::default());
                }
            }
            (Some(_), _) => block = "",
            (None, "sh") => steps.last_mut().expect("opened").commands.push(line.to_owned()),
            (None, "text") => steps.last_mut().expect("after commands").shown.push(line.trim().to_owned()),
            _ => {}
        }
    }
    steps
}

/// One script, as somebody types it: `export` holds for what follows, and the exit code is the one that is written behind.
fn script(commands: &[String]) -> String {
    let checked = commands.iter().map(|line| {
        let (command, code) = line.split_once("    # exit code ").unwrap_or((line, "0"));
        format!(
            "{command}\ncode=$?; [ $code = {code} ] || {{ echo \"ended with $code, not {code}: {}\"; exit 99; }}\n",
            quoted(command)
        )
    });
    checked.collect()
}

fn quoted(command: &str) -> String {
    command.replace(['"', '$', '`', '\\'], "?")
}

/// How many stores a library function makes depends on the processor, and which worker was first on chance.
fn counts(line: &str) -> bool {
    line.starts_with("tested ") || line.starts_with("exhaustive ") || line.ends_with(" events")
}

/// Every number is one `0`.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    for c in text.chars() {
        match (c.is_ascii_digit(), masked.ends_with('0')) {
            (true, true) => {}
            (true, false) => masked.push('0'),
            (false, _) => masked.push(c),
        }
    }
    masked
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the commands of a page in a folder with these files of the repository.
#[track_caller]
fn follow(page: &str, files: &[&str], prepare: &str) {
    let folder = tempfile::tempdir().expect("temporary directory");
    for file in files {
        let file = repository().join(file);
        fs::copy(&file, folder.path().join(file.file_name().expect("a name"))).expect("there");
    }
    let mut path = OsString::from(Path::new(env!("CARGO_BIN_EXE_fencepost")).parent().expect("a folder"));
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let bash = |commands: &str| {
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(format!("exec 2>&1\n{commands}")).current_dir(folder.path());
        shell.env("PATH", &path).env_remove("PMEM_IS_PMEM_FORCE").env_remove("PMEM2_FORCE_GRANULARITY");
        let output = shell.output().expect("bash starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{commands}\n{said}");
        said
    };
    bash(prepare);
    let steps = steps(&fs::read_to_string(repository().join(page)).expect("there"));
    assert!(!steps.is_empty(), "{page} has no commands");
    let mut exports = String::new();
    for step in steps {
        let said = bash(&format!("{exports}{}", script(&step.commands)));
        for line in &step.shown {
            let there = said.contains(line.as_str()) || (counts(line) && masked(&said).contains(&masked(line)));
            assert!(there, "`{line}` is not in what this printed: {:#?}\n{said}", step.commands);
        }
        exports.extend(step.commands.iter().filter(|line| line.starts_with("export ")).map(|line| format!("{line}\n")));
    }
}

#[test]
fn the_tutorial() {
    follow("docs/tutorial.md", &["docs/examples/log.c", "docs/examples/stack.c"], "true");
}

#[test]
fn the_page_about_ci() {
    follow("docs/ci.md", &["targets/demo/kv.c"], "cc -O1 -g kv.c -o kv");
}

/// How `check` without any option is told of PMDK's choice of code: by what the variable for libpmem says.
fn check_stack(force: Option<&str>) -> String {
    let folder = tempfile::tempdir().expect("temporary directory");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-o", "stack"]).arg(repository().join("docs/examples/stack.c")).arg("-lpmemobj");
    assert!(cc.current_dir(folder.path()).status().expect("cc is installed").success());
    let mut check = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    check.args(["check", "--no-lint", "--recover", "./stack s.pool verify", "--", "./stack", "s.pool", "push", "1"]);
    check.current_dir(folder.path()).env_remove("PMEM_IS_PMEM_FORCE").env_remove("PMEM2_FORCE_GRANULARITY");
    check.envs(force.map(|value| ("PMEM_IS_PMEM_FORCE", value)));
    let output = check.output().expect("fencepost starts");
    let (found, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{found}{said}")
}

/// A newcomer need not know how PMDK decides.
#[test]
fn pmdk_runs_its_code_for_persistent_memory() {
    let said = check_stack(None);
    assert!(
        said.contains("note: it uses PMDK: PMEM_IS_PMEM_FORCE=1 and PMEM2_FORCE_GRANULARITY=CACHE_LINE are set"),
        "{said}"
    );
    assert!(said.contains("error[FP06") && !said.contains("for an ordinary file"), "{said}");
}

/// Whoever wants the other code gets it, and is told what that means.
#[test]
fn pmdk_that_does_not_flush_is_noticed() {
    let said = check_stack(Some("0"));
    assert!(said.contains("libpmem took the pool for an ordinary file"), "{said}");
    assert!(said.contains("set PMEM_IS_PMEM_FORCE=1"), "{said}");
    assert!(!said.contains("it uses PMDK"), "{said}");
}
