//! `fencepost fuzz` the other ways: every way an input can reach a program, every output, what breaks down, what is not reached, and the
//! workload that `check` chooses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// One program for all: `tool POOL [FILE | put K V | …]`; without more it reads its input.
const TOOL: &str = r#"
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static uint64_t *s;
static void persist(void *a) { _mm_clwb(a); _mm_sfence(); }
static void pair(void) { s[0] = 1; persist(s); s[8] = 2; persist(s + 8); }
static void never(void) { s[32] = 5; persist(s + 32); }
static void loop(const char *b, size_t n) { for (volatile int i = 0; n > 2 && b[0] == 'H'; i++) ; }
int main(int c, char **v) {
  int fd = open(v[1], O_RDWR | O_CREAT, 0644);
  if (fd < 0 || ftruncate(fd, 4096)) return 2;
  s = mmap(0, 4096, 3, MAP_SHARED, fd, 0);
  if (s[0] && !s[8]) { fputs("half a pair\n", stderr); return 1; }
  if (c > 4 || (c > 3 && strcmp(v[2], "put") == 0)) { s[16 + strtoull(v[3], 0, 10) % 8] = 1; persist(s + 16); pair(); puts("ok"); return 0; }
  if (c > 3) { puts(s[0] ? "there" : "none"); return 0; }
  FILE *f = c > 2 ? fopen(v[2], "r") : stdin;
  if (!f) return 3;
  char b[64] = "";
  size_t n = fread(b, 1, 63, f);
  s[56] = 1; persist(s + 56);
#ifdef HANGS
  loop(b, n);
#endif
#ifdef CRASHES
  if (n > 2 && !memcmp(b, "BAD", 3)) *(volatile int *)0 = 1;
#endif
#ifdef RANDOM
  { char x[64] = ""; FILE *o = fopen("/proc/self/schedstat", "r"); if (!o || !fread(x, 1, 20, o)) return 4; fclose(o);
    for (int i = 0; i < 20; i++) { if (x[i] & 1) { s[40] = i; persist(s + 40); } if (x[i] & 2) { s[48] = i; persist(s + 48); } } }
#endif
  if (n > 2 && !memcmp(b, "MAG", 3)) pair();
  else { s[24] = n; persist(s + 24); }
  if (n == 63 && !memcmp(b, "nobody will write this", 22)) never();
  (void)loop;
  return 0;
}
"#;

struct Space {
    folder: TempDir,
}

impl Space {
    fn new(defines: &[&str]) -> Space {
        let space = Space { folder: tempfile::tempdir().unwrap() };
        fs::write(space.path("tool.c"), TOOL).unwrap();
        fs::write(space.path("words"), "\"MAG\"\n\"HHH\"\n\"BAD\"\n").unwrap();
        let built = Command::new("cc")
            .current_dir(space.folder.path())
            .args(["-g", "-O1", "-mclwb", "-o", "tool", "tool.c"])
            .args(defines)
            .status();
        assert!(built.unwrap().success());
        space
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fencepost(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        command.current_dir(self.folder.path()).args(arguments).stdin(Stdio::null());
        command.output().unwrap()
    }

    fn fuzz(&self, arguments: &[&str]) -> Output {
        self.fencepost(&[&["fuzz", "--progress", "never", "--no-lint", "--executions", "120"], arguments].concat())
    }
}

fn text(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn code(output: &Output, expected: i32) -> (String, String) {
    let (out, err) = text(output);
    assert_eq!(output.status.code(), Some(expected), "{out}{err}");
    (out, err)
}

fn embedded() -> bool {
    supervise::probe::is_embedded()
}

#[test]
fn inputs_in_files_with_two_jobs_and_every_output() {
    if !embedded() {
        return targets::skip("this build has no probe");
    }
    let space = Space::new(&[]);
    fs::create_dir_all(space.path("seeds/queue")).unwrap();
    fs::write(space.path("seeds/queue/id:000000"), "hello").unwrap();
    let fuzz = ["--jobs", "2", "--seeds", "seeds", "--dict", "words", "--message-format", "sarif", "--html", "r.html"];
    let output = space.fuzz(&[&fuzz[..], &["--", "./tool", "pool", "@@"]].concat());
    let (out, _) = code(&output, 1);
    let sarif: serde_json::Value = serde_json::from_str(&out).expect("one document");
    assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(1), "{out}");
    let page = fs::read_to_string(space.path("r.html")).unwrap();
    assert!(page.contains("A power failure at the wrong moment breaks this program"));
    assert!(page.contains("PM transitions"));
    let report = space.fencepost(&["report", "--bundles", "fuzz-out/findings", "-o", "again.html"]);
    code(&report, 0);

    // What is known fails nothing, and the corpus is an input for others.
    fs::write(space.path("known"), &out).unwrap();
    let again = ["--jobs", "1", "--seeds", "fuzz-out", "--out", "other", "--baseline", "known"];
    let again = [&again[..], &["--message-format", "junit", "--", "./tool", "pool", "@@"]].concat();
    let (out, _) = code(&space.fuzz(&again), 0);
    assert!(out.starts_with("<?xml") && out.contains("<testsuites"), "{out}");
    assert!(fs::read_dir(space.path("other/queue")).unwrap().count() > 1);
}

#[test]
fn operations_as_commands_and_input_as_arguments() {
    if !embedded() {
        return targets::skip("this build has no probe");
    }
    let space = Space::new(&[]);
    fs::write(space.path("g.toml"), "[operations]\nput = \"put {newkey}\"\n[readback]\nqueries = [\"get {key}\"]\n")
        .unwrap();
    let options = ["--jobs", "1", "--until-found", "--grammar", "g.toml", "--op-command", "./tool pool {op}"];
    let (out, _) = code(&space.fuzz(&options), 1);
    assert!(out.contains("error[FP060"), "{out}");
    fs::write(space.path("args"), "\"put\\n1\"\n").unwrap();
    let options =
        ["--jobs", "1", "--out", "a", "--arguments", "--dict", "args", "--until-found", "--", "./tool", "pool"];
    let (out, _) = code(&space.fuzz(&options), 1);
    assert!(out.contains("error[FP060"), "{out}");
}

#[test]
fn what_breaks_down_is_told_once() {
    if !embedded() {
        return targets::skip("this build has no probe");
    }
    let space = Space::new(&["-DHANGS", "-DCRASHES"]);
    let options =
        ["--jobs", "1", "--timeout", "200ms", "--check-share", "0", "--dict", "words", "--", "./tool", "pool"];
    let (out, _) = code(&space.fuzz(&options), 1);
    assert_eq!(out.matches("does not end in time, without any power failure").count(), 1, "{out}");
    assert_eq!(out.matches("ends with signal 11 without any power failure").count(), 1, "{out}");
    assert!(!out.contains("the other side"), "{out}");
    assert!(out.contains("loop") || out.contains("main"), "{out}");
}

#[test]
fn a_program_that_is_not_deterministic_is_told() {
    if !embedded() {
        return targets::skip("this build has no probe");
    }
    let space = Space::new(&["-DRANDOM"]);
    let options = ["--jobs", "1", "--check-share", "0", "--dict", "words", "--", "./tool", "pool"];
    let (_, err) = code(&space.fuzz(&options), 0);
    assert!(err.contains("the program is not deterministic"), "{err}");
    let space = Space::new(&[]);
    let (_, err) = code(&space.fuzz(&options), 0);
    assert!(!err.contains("not deterministic"), "{err}");
}

#[test]
fn what_is_not_reached_is_listed() {
    if !embedded() {
        return targets::skip("this build has no probe");
    }
    let space = Space::new(&[]);
    let options = ["--jobs", "1", "--check-share", "0", "--dict", "words", "--", "./tool", "pool"];
    code(&space.fuzz(&options), 0);
    let (out, _) = code(&space.fencepost(&["fuzz", "cover", "fuzz-out"]), 0);
    let line = |what: &str| 1 + TOOL.lines().position(|line| line.contains(what)).expect("it is there");
    assert!(out.contains(&format!("tool.c:{}: ", line("nobody will write this"))), "{out}");
    assert!(!out.contains(&format!("tool.c:{}: ", line("\"MAG\""))), "`pair` was executed: {out}");
}

#[test]
fn a_full_disk_is_told() {
    // Only root can make a small file system; in a namespace of its own anybody can.
    if !embedded() {
        return targets::skip("this build has no probe");
    }
    let space = Space::new(&[]);
    fs::create_dir(space.path("full")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k none {0}/full && exec {1} fuzz --progress never --no-lint --executions 3000 --check-share 0 \
         --jobs 1 --out full/out --dict words -- ./tool pool",
        space.folder.path().display(),
        env!("CARGO_BIN_EXE_fencepost")
    );
    let mut command = Command::new("unshare");
    command.current_dir(space.folder.path()).args(["--mount", "--map-root-user", "sh", "-c", &script]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (_, err) = code(&output, 2);
    assert!(err.contains("the disk is full") && err.contains("run the same command again"), "{err}");
}

#[test]
fn check_chooses_operations_that_reach_more() {
    if !embedded() {
        return targets::skip("this build has no probe");
    }
    let target = targets::crash::rare().unwrap().into_iter().find(|target| target.name == "cpp/leaves").unwrap();
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    let program = target.build(targets::crash::TWIN, &built).unwrap().display().to_string();
    let space = Space { folder: tempfile::tempdir().unwrap() };
    let grammar = target.grammar.unwrap().display().to_string();
    let base = [
        "check",
        "--no-lint",
        "--count",
        "24",
        "--strategy",
        "program-order",
        "--budget",
        "none",
        "--grammar",
        &grammar,
    ];
    let check = |more: &[&str]| space.fencepost(&[&base[..], more, &["--", &program, "pool"]].concat());
    let (_, err) = code(&check(&[]), 0);
    assert!(err.contains("were chosen that make"), "{err}");
    let numbers: Vec<u64> = err
        .split("make ")
        .nth(1)
        .unwrap()
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|n| n.parse().ok())
        .collect();
    assert!(numbers[0] > numbers[1], "{err}");
    let chosen = fs::read_to_string(space.path(".fencepost/chosen.ops")).unwrap();
    assert!((1..=24).contains(&chosen.lines().count()), "{chosen}");
    fs::remove_dir_all(space.path(".fencepost")).unwrap();
    let (_, err) = code(&check(&["--no-select"]), 0);
    assert!(!err.contains("chosen"), "{err}");
    assert!(!space.path(".fencepost").exists());
}
