//! `fencepost fuzz` from the outside: it finds what no obvious workload shows, says nothing about twins, is the same for the same seed,
//! survives `kill -9`, and tells what is wrong.
//!
//! A few quick variants; `cargo xtask fuzz-targets` tries all of `targets/fuzz`, and the twins.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use targets::crash::{CrashTarget, Variant, rare};
use tempfile::TempDir;

/// And how many executions are enough. The last shows only when a crash image is opened that nothing else makes interesting.
const QUICK: [(&str, u32, &str); 3] = [("c/ring", 1, "1500"), ("c/table", 2, "1500"), ("c/journal", 1, "30000")];

struct Space {
    folder: TempDir,
    program: PathBuf,
    target: CrashTarget,
}

impl Space {
    fn new(name: &str, variant: u32) -> Space {
        let target = rare().unwrap().into_iter().find(|target| target.name == name).expect("it is in targets/fuzz");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
        let program = target.build(Variant(variant), &built).unwrap();
        Space { folder: tempfile::tempdir().unwrap(), program, target }
    }

    fn fuzz(&self, options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        command.current_dir(self.folder.path()).arg("fuzz").args(["--progress", "never", "--jobs", "1"]).args(options);
        match &self.target.grammar {
            Some(grammar) => command.arg("--grammar").arg(grammar),
            None => command.arg("--dict").arg(self.target.source.with_file_name("../words.dict")),
        };
        let words = self.target.run_command(&self.program, &self.folder.path().join("pool"));
        if words.iter().any(|word| word == "{socket}") {
            command.args(["--op-socket", "{socket}"]);
        }
        command.envs(self.target.env.iter().cloned()).arg("--").args(words);
        command.stdin(Stdio::null());
        // In the background of a shell it is ignored, and stays so.
        // SAFETY: only a system call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            });
        }
        command
    }

    fn cases(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.folder.path().join("fuzz-out/cases.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Inputs and images of all cases.
    fn corpus(&self) -> Vec<(Vec<u8>, String, String)> {
        let word = |case: &serde_json::Value, name: &str| case[name].as_str().unwrap_or_default().to_owned();
        let input = |case: &serde_json::Value| {
            fs::read(self.folder.path().join("fuzz-out/queue").join(word(case, "file")))
                .expect("what is listed is there")
        };
        self.cases().iter().map(|case| (input(case), word(case, "start"), word(case, "left"))).collect()
    }
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Rule and line of everything that a campaign found.
fn findings(output: &Output) -> Vec<(String, u64)> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines
        .filter(|value| value["rule"].is_string())
        .map(|value| {
            (value["rule"].as_str().unwrap_or_default().to_owned(), value["locations"][0]["line"].as_u64().unwrap_or(0))
        })
        .collect()
}

fn finds(name: &str, variant: u32, executions: &str) -> Result<(), String> {
    let space = Space::new(name, variant);
    let output = space
        .fuzz(&["--executions", executions, "--until-found", "--no-lint", "--message-format", "json"])
        .output()
        .unwrap();
    let found = findings(&output);
    let expected: Vec<u64> = space.target.expected(Variant(variant)).map(|e| u64::from(e.line)).collect();
    let hit = found.iter().any(|(_, line)| expected.contains(line)) || (expected.is_empty() && !found.is_empty());
    match hit {
        true => Ok(()),
        false => Err(format!("{name} {variant}: lines {expected:?} are guilty, found {found:?}\n{}", err(&output))),
    }
}

#[test]
fn rare_bugs_are_found() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let missed: Vec<String> =
        QUICK.iter().filter_map(|(name, variant, most)| finds(name, *variant, most).err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn a_twin_stays_clean_and_a_seed_makes_one_corpus() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let corpora: Vec<_> = (0..2)
        .map(|_| {
            let space = Space::new("c/ring", 0);
            let output = space.fuzz(&["--executions", "300", "--no-lint"]).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}{}", String::from_utf8_lossy(&output.stdout), err(&output));
            assert!(!space.folder.path().join("pool").exists(), "the first run's pool is left");
            space.corpus()
        })
        .collect();
    assert!(corpora[0].len() > 5, "only {} cases", corpora[0].len());
    assert_eq!(corpora[0], corpora[1]);
}

#[test]
fn nothing_is_lost_by_kill_9() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let space = Space::new("c/ring", 0);
    let mut before: BTreeSet<Vec<u8>> = BTreeSet::new();
    for round in 0..20u64 {
        let mut child = space
            .fuzz(&["--time", "5m", "--check-share", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(40 + round * 37 % 400));
        child.kill().unwrap();
        child.wait().unwrap();
        let now: BTreeSet<Vec<u8>> = space.corpus().into_iter().map(|(input, ..)| input).collect();
        assert!(before.is_subset(&now), "round {round}: {} inputs became {}", before.len(), now.len());
        before = now;
    }
    let output = space.fuzz(&["--executions", "100000000", "--check-share", "0"]).stdout(Stdio::piped()).spawn();
    let mut last = output.unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    // SAFETY: our own child.
    unsafe { libc::kill(last.id() as i32, libc::SIGINT) };
    assert_eq!(last.wait().unwrap().code(), Some(130));
    let cases = space.cases();
    assert!(cases.len() >= before.len() && !cases.is_empty());
    let replay = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .current_dir(space.folder.path())
        .args(["fuzz", "replay", &(cases.len() - 1).to_string()])
        .output()
        .unwrap();
    assert_eq!(replay.status.code(), Some(0), "{}", err(&replay));
    assert!(!err(&replay).contains("does not leave what it left before"), "{}", err(&replay));
}

#[test]
fn crashes_without_a_power_failure_are_findings_of_their_own() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let space = Space::new("c/words", 4);
    let options = ["--executions", "3000", "--no-lint", "--check-share", "0", "--message-format", "json"];
    let output = space.fuzz(&options).output().unwrap();
    let found = findings(&output);
    assert_eq!(output.status.code(), Some(1), "{found:?} {}", err(&output));
    assert_eq!(found.iter().filter(|(rule, _)| rule == "FP0701").count(), 1, "{found:?}");
}

#[test]
fn what_is_wrong_is_told() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let space = Space::new("c/ring", 0);
    let folder = space.folder.path();
    let fencepost = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        command.current_dir(folder).arg("fuzz").args(arguments).stdin(Stdio::null()).output().unwrap()
    };
    let no_pool = fencepost(&["--out", "none", "--", "/bin/cat"]);
    assert_eq!(no_pool.status.code(), Some(4), "{}", err(&no_pool));
    assert!(err(&no_pool).contains("no persistent-memory activity"), "{}", err(&no_pool));
    fs::write(folder.join("empty.toml"), "[operations]\n").unwrap();
    let nothing = fencepost(&["--grammar", "empty.toml", "--", "/bin/cat"]);
    assert_eq!(nothing.status.code(), Some(2), "{}", err(&nothing));
    assert!(err(&nothing).contains("no operations"), "{}", err(&nothing));

    let made = space.fuzz(&["--executions", "20", "--check-share", "0"]).output().unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", err(&made));
    let about = folder.join("fuzz-out/fuzz.json");
    let text = fs::read_to_string(&about).unwrap();
    fs::write(&about, text.replace(&format!("\"version\": {}", fuzz::corpus::VERSION), "\"version\": 999")).unwrap();
    let other = space.fuzz(&["--executions", "40"]).output().unwrap();
    assert_eq!(other.status.code(), Some(2), "{}", err(&other));
    assert!(err(&other).contains("another version"), "{}", err(&other));
    fs::write(&about, text.replace("/pool", "/another")).unwrap();
    let other = space.fuzz(&["--executions", "40"]).output().unwrap();
    assert_eq!(other.status.code(), Some(2), "{}", err(&other));
    assert!(err(&other).contains("another campaign"), "{}", err(&other));
}
