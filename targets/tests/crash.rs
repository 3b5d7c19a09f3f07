//! Every program of `targets/crash`, in every variant: it can be built, its workload ends well, and its recovery
//! is content with the pool that the workload leaves, with no pool, and with one that was never created whole.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use targets::crash::{self, Class, CrashTarget, TWIN, Variant};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

fn start(words: &[String], env: &[(String, String)]) -> Output {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(env.iter().map(|(name, value)| (name, value)));
    command.output().unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

fn sound(target: &CrashTarget, variant: Variant) -> Result<(), String> {
    // Where `crash_targets` builds them, too: whoever comes second finds them there.
    let program = target.build(variant, &folder("crash/built")).map_err(|error| error.to_string())?;
    let beside = folder(&format!("crash-pools/{}-{variant}", target.name.replace('/', "-")));
    let pool = beside.join("pool");
    remove_all_but(&beside, &[])?;
    let ends_well = |what: &str, words: Vec<String>| {
        let output = start(&words, &target.env);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let text = || format!("{} variant {variant}, {what}: {}: {stderr}", target.name, output.status);
        output.status.success().then_some(()).ok_or_else(text)
    };
    let recovery = || target.recover_command(&program, &pool);
    // As under Fencepost: a recovery does not see what one before it left beside the pool.
    let without_traces = |left: &[OsString]| remove_all_but(&beside, left);
    ends_well("recovery without a pool", recovery())?;
    ends_well("the workload", target.run_command(&program, &pool))?;
    let left = names(&beside)?;
    ends_well("recovery after the workload", recovery())?;
    without_traces(&left)?;
    ends_well("recovery again", recovery())?;
    // Files beside the pool say what it must hold, and a pool that is not whole is what some of these bugs are about.
    let alone = ["c/", "cpp/", "rust/", "pmdk/"].iter().any(|folder| target.name.starts_with(folder));
    if !alone {
        return fs::remove_dir_all(&beside).map_err(|error| error.to_string());
    }
    let length = fs::metadata(&pool).map_err(|error| format!("{}: {error}", pool.display()))?.len();
    for (what, length) in [("recovery of an empty file", 0), ("recovery of zeros", length)] {
        let file = fs::File::create(&pool).map_err(|error| error.to_string())?;
        file.set_len(length).map_err(|error| error.to_string())?;
        without_traces(&left)?;
        ends_well(what, recovery())?;
    }
    fs::remove_dir_all(&beside).map_err(|error| error.to_string())
}

fn names(folder: &Path) -> Result<Vec<OsString>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    entries.map(|entry| entry.map(|entry| entry.file_name()).map_err(|error| error.to_string())).collect()
}

fn remove_all_but(folder: &Path, kept: &[OsString]) -> Result<(), String> {
    for name in names(folder)?.into_iter().filter(|name| !kept.contains(name)) {
        let path = folder.join(name);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn suite(prefix: &str) {
    let targets = crash::all().expect("every program has a valid head and valid markers");
    let mut wrong = Vec::new();
    let of_suite: Vec<&CrashTarget> = targets.iter().filter(|target| target.name.starts_with(prefix)).collect();
    assert!(!of_suite.is_empty(), "{prefix} holds no programs");
    for target in of_suite {
        for variant in [TWIN].into_iter().chain(target.variants()) {
            wrong.extend(sound(target, variant).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn c() {
    suite("c/");
}

#[test]
fn cpp() {
    suite("cpp/");
}

#[test]
fn rust() {
    suite("rust/");
}

#[test]
fn files() {
    suite("files/");
}

#[test]
fn databases() {
    suite("databases/");
}

#[test]
fn limits() {
    suite("limits/");
}

#[test]
fn pmdk() {
    suite("pmdk/");
}

#[test]
fn every_class_is_seeded_often() {
    let targets = crash::all().expect("every program has a valid head and valid markers");
    for class in Class::ALL {
        let seeded = |target: &CrashTarget| {
            target
                .variants()
                .filter(|variant| target.expected(*variant).next().is_some_and(|e| e.class == class))
                .count()
        };
        let count: usize = targets.iter().map(seeded).sum();
        println!("{class}: {count}");
        assert!(count >= 8, "{class}: only {count} seeded bugs");
    }
}

/// Only a few of them run in a test; what cannot be built would be noticed when somebody measures.
#[test]
fn programs_with_rare_bugs_can_be_built() {
    let programs = folder("fuzz-programs");
    let mut wrong = Vec::new();
    for target in crash::rare().expect("every program has a valid head and valid markers") {
        for variant in [TWIN].into_iter().chain(target.variants()) {
            wrong.extend(target.build(variant, &programs).err().map(|error| error.to_string()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
