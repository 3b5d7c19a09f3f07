//! `fs check` and `fuzz` on several machines: what they find does not depend on how many workers there were, and what dies does no harm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use targets::crash::{Variant, rare};
use tempfile::TempDir;

use crate::fleet::Redis;

fn fencepost(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.args(words).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn worker(folder: &Path, url: &str) -> Child {
    fencepost(folder, &["worker", url, "--jobs", "1", "--wait", "60s"]).spawn().unwrap()
}

/// The findings, and some numbers of the summary.
fn found(output: &Output) -> (Vec<String>, Vec<Value>) {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut values: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let summary = values.pop().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let numbers = ["points_decided", "states_decided", "states_failing", "complete", "errors", "warnings"];
    (values.iter().map(Value::to_string).collect(), numbers.map(|name| summary[name].clone()).into())
}

/// Our file system, with a bug.
struct FileSystem {
    folder: TempDir,
    mkfs: String,
    daemon: String,
}

impl FileSystem {
    fn new() -> FileSystem {
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fleet-fs");
        let program = targets::fs::build(&built, 3).unwrap();
        let program = program.display();
        let folder = tempfile::tempdir().unwrap();
        FileSystem {
            folder,
            mkfs: format!("{program} --mkfs {{pool}}"),
            daemon: format!("{program} {{pool}} -f -s {{mount}}"),
        }
    }

    fn check(&self, more: &[&str]) -> Command {
        let workloads = concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/fs/bugs.ops");
        let words = ["fs", "check", "--progress", "never", "--message-format", "json", "--batch", "4", "--jobs", "1"];
        let target = ["--ops", workloads, "--mkfs", &self.mkfs, "--fuse", &self.daemon];
        fencepost(self.folder.path(), &[&words[..], &target, more].concat())
    }
}

#[test]
fn a_file_system_is_checked_by_any_number_of_workers() {
    let Some(redis) = Redis::start() else { return };
    let here = FileSystem::new();
    let local = here.check(&[]).output().unwrap();
    assert_eq!(local.status.code(), Some(1), "{}", String::from_utf8_lossy(&local.stderr));
    for count in [1, 3] {
        let there = FileSystem::new();
        let url = redis.url(&format!("fs-{count}"));
        let workers: Vec<Child> = (0..count).map(|_| worker(there.folder.path(), &url)).collect();
        let ended = there.check(&["--fleet", &url]).output().unwrap();
        assert_eq!(found(&ended), found(&local), "{}", String::from_utf8_lossy(&ended.stderr));
        assert_eq!(ended.status.code(), local.status.code());
        for worker in workers {
            assert_eq!(worker.wait_with_output().unwrap().status.code(), Some(0));
        }
        let bundles = |of: &FileSystem| fleet_files(&of.folder.path().join(".fencepost"));
        assert_eq!(bundles(&there), bundles(&here));
        let results = fencepost(there.folder.path(), &["fleet", "results", &url]).output().unwrap();
        assert_eq!((results.status.code(), found(&results).0), (Some(1), found(&local).0));
    }
}

/// Names of all files below a folder.
fn fleet_files(folder: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => names
                .extend(fleet_files(&entry.path()).into_iter().map(|name| Path::new(&entry.file_name()).join(name))),
            false => names.push(entry.file_name().into()),
        }
    }
    names.sort();
    names
}

/// The kill comes while units are performed: another worker has them after the lease.
#[test]
fn a_file_system_is_checked_though_a_worker_and_the_coordinator_are_killed() {
    let Some(redis) = Redis::start() else { return };
    let here = FileSystem::new();
    let local = here.check(&[]).output().unwrap();
    let there = FileSystem::new();
    let url = redis.url("fs-killed");
    let check = || there.check(&["--fleet", &url, "--lease", "1s"]);
    let mut coordinator = check().spawn().unwrap();
    let mut first = worker(there.folder.path(), &url);
    until_units_are_under_way(there.folder.path(), &url);
    first.kill().unwrap();
    first.wait().unwrap();
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    let second = worker(there.folder.path(), &url);
    let ended = check().output().unwrap();
    assert_eq!(found(&ended), found(&local), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(second.wait_with_output().unwrap().status.code(), Some(0));
}

fn until_units_are_under_way(folder: &Path, url: &str) {
    for _ in 0..3000 {
        let status = fencepost(folder, &["fleet", "status", url]).output().unwrap();
        let text = String::from_utf8_lossy(&status.stdout).into_owned();
        if text.contains(" under way") && !text.contains(" 0 under way") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("no worker has taken a unit");
}

/// A worker without room for its files gives its units back, says why, and goes; another one does them.
#[test]
fn a_worker_without_disk_space_does_no_harm() {
    let Some(redis) = Redis::start() else { return };
    let here = FileSystem::new();
    let local = here.check(&[]).output().unwrap();
    let there = FileSystem::new();
    let url = redis.url("full");
    let small = there.folder.path().join("small");
    fs::create_dir(&small).unwrap();
    let line = format!(
        "mount -t tmpfs -o size=128k none {small} && TMPDIR={small} exec {own} worker {url} --jobs 1 --wait 60s",
        small = small.display(),
        own = env!("CARGO_BIN_EXE_fencepost"),
    );
    let mut full = Command::new("unshare");
    full.args(["--mount", "--map-root-user", "sh", "-c", &line]).stdout(Stdio::null()).stderr(Stdio::piped());
    let full = full.current_dir(there.folder.path()).spawn().unwrap();
    let coordinator = there.check(&["--fleet", &url]).spawn().unwrap();
    // Nobody else has taken the units.
    let said = full.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.code() == Some(3) && text.contains("failed 5 times in a row"), "{text}");
    let good = worker(there.folder.path(), &url);
    let ended = coordinator.wait_with_output().unwrap();
    assert_eq!(found(&ended), found(&local), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(good.wait_with_output().unwrap().status.code(), Some(0));
}

/// A program of `targets/fuzz`.
struct Fuzzed {
    folder: TempDir,
    words: Vec<String>,
}

impl Fuzzed {
    fn new() -> Fuzzed {
        let target = rare().unwrap().into_iter().find(|target| target.name == "c/ring").expect("it is in targets/fuzz");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fleet-fuzz");
        let program = target.build(Variant(1), &built).unwrap();
        // The same path everywhere: findings name it.
        let pool = built.join("pool");
        let mut words: Vec<String> =
            ["fuzz", "--progress", "never", "--message-format", "json", "--seed", "3"].map(str::to_owned).into();
        words.extend(["--executions", "640", "--slice", "20", "--check-budget", "60s"].map(str::to_owned));
        let grammar = target.grammar.as_ref().unwrap().display().to_string();
        words.extend(["--grammar".to_owned(), grammar, "--".to_owned()]);
        words.extend(target.run_command(&program, &pool));
        Fuzzed { folder: tempfile::tempdir().unwrap(), words }
    }

    fn fuzz(&self, more: &[&str]) -> Command {
        let own: Vec<&str> = self.words.iter().map(String::as_str).collect();
        fencepost(self.folder.path(), &[&own[..1], more, &own[1..]].concat())
    }

    /// Inputs, what they begin with and what they leave.
    fn corpus(&self) -> Vec<(Vec<u8>, String, String)> {
        let out = self.folder.path().join("fuzz-out");
        let text = fs::read_to_string(out.join("cases.jsonl")).unwrap();
        let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let word = |case: &Value, name: &str| case[name].as_str().unwrap_or_default().to_owned();
        cases
            .map(|case| {
                let input = fs::read(out.join("queue").join(word(&case, "file"))).unwrap();
                (input, word(&case, "start"), word(&case, "left"))
            })
            .collect()
    }

    /// Rule and place of each finding; the folder is another one each time.
    fn places(output: &Output) -> Vec<(String, String)> {
        let values = found(output).0.into_iter().map(|text| serde_json::from_str::<Value>(&text).unwrap());
        values.map(|value| (value["id"].to_string(), value["locations"][0]["line"].to_string())).collect()
    }
}

#[test]
fn a_campaign_in_slices_is_the_same_on_any_number_of_machines() {
    let Some(redis) = Redis::start() else { return };
    let here = Fuzzed::new();
    let local = here.fuzz(&["--jobs", "2"]).output().unwrap();
    assert_eq!(local.status.code(), Some(1), "{}", String::from_utf8_lossy(&local.stderr));
    assert!(here.corpus().len() > 5, "slices learn from each other");
    for count in [1, 3] {
        let there = Fuzzed::new();
        let url = redis.url(&format!("fuzz-{count}"));
        let mut workers: Vec<Child> = (0..count).map(|_| worker(there.folder.path(), &url)).collect();
        let campaign = there.fuzz(&["--fleet", &url, "--lease", "1s"]);
        let mut campaign = campaign;
        let running = campaign.spawn().unwrap();
        if count > 1 {
            // One of them dies on the way.
            until_units_are_under_way(there.folder.path(), &url);
            let mut first = workers.remove(0);
            first.kill().unwrap();
            first.wait().unwrap();
        }
        let ended = running.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
        assert_eq!(there.corpus(), here.corpus());
        assert_eq!(Fuzzed::places(&ended), Fuzzed::places(&local));
        for worker in workers {
            assert_eq!(worker.wait_with_output().unwrap().status.code(), Some(0));
        }
        let results = fencepost(there.folder.path(), &["fleet", "results", &url]).output().unwrap();
        assert_eq!(results.status.code(), Some(1));
    }
}
