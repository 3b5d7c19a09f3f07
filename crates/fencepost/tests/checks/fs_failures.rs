//! What `fs check` says where nothing can be checked, and that it leaves no mount and no daemon behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use targets::fs::{Fault, build, build_faulty, build_pmemobjfs};

const FENCEPOST: &str = env!("CARGO_BIN_EXE_fencepost");

fn space(purpose: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fs-failures").join(purpose);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn operations(folder: &Path, text: &str) -> String {
    let file = folder.join("operations");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

/// Words of a check of this daemon on these operations.
fn check(program: &Path, mkfs: &Path, operations: &str) -> Vec<String> {
    let words = [
        "fs",
        "check",
        "--progress",
        "never",
        "--message-format",
        "json",
        "--timeout",
        "2s",
        "--mkfs",
        &format!("{} --mkfs {{pool}}", mkfs.display()),
        "--fuse",
        &format!("{} {{pool}} -f -s {{mount}}", program.display()),
        "--ops",
        operations,
    ];
    words.map(str::to_owned).to_vec()
}

fn run(folder: &Path, words: &[String]) -> Output {
    Command::new(FENCEPOST).args(words).current_dir(folder).output().unwrap()
}

fn faulty(purpose: &str, fault: Fault) -> Output {
    let folder = space(purpose);
    let twin = build(&folder, 0).unwrap();
    let program = build_faulty(&folder, 0, fault).unwrap();
    let operations = operations(&folder, "creat foo\n");
    run(&folder, &check(&program, &twin, &operations))
}

/// The message of a check that ended with this code.
fn said(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

/// Processes whose command line has this word.
fn processes_with(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let is = |line: Vec<u8>| String::from_utf8_lossy(&line).contains(word);
    entries.filter(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(is)).count()
}

#[test]
fn a_daemon_that_hangs_at_mount() {
    let text = said(&faulty("mount", Fault::HangsAtMount), 3);
    assert!(text.contains("the daemon hangs at mount, without any crash"), "{text}");
}

#[test]
fn a_daemon_that_hangs_at_unmount() {
    let text = said(&faulty("unmount", Fault::HangsAtUnmount), 3);
    assert!(text.contains("the daemon hangs after it was unmounted, without any crash"), "{text}");
}

#[test]
fn a_daemon_that_dies_or_is_killed() {
    let text = said(&faulty("dies", Fault::Dies), 3);
    assert!(text.contains("signal 6"), "{text}");
    let text = said(&faulty("killed", Fault::Killed), 3);
    assert!(text.contains("signal 9"), "{text}");
}

#[test]
fn a_daemon_that_goes_into_the_background() {
    let folder = space("background");
    let program = build(&folder, 0).unwrap();
    let operations = operations(&folder, &"creat foo\nunlink foo\n".repeat(50));
    let words = check(&program, &program, &operations).iter().map(|word| word.replace(" -f ", " ")).collect::<Vec<_>>();
    let text = said(&run(&folder, &words), 3);
    assert!(text.contains("keep it in the foreground (libfuse: -f)"), "{text}");
}

#[test]
fn a_daemon_that_cannot_make_the_file_system() {
    let folder = space("unmade");
    let program = build(&folder, 0).unwrap();
    let operations = operations(&folder, "creat foo\n");
    let mut words = check(&program, &program, &operations);
    let mkfs = words.iter().position(|word| word == "--mkfs").unwrap();
    words.drain(mkfs..mkfs + 2);
    let text = said(&run(&folder, &words), 3);
    assert!(
        text.contains("--fuse: the daemon, which makes the file system at its first mount without --mkfs"),
        "{text}"
    );
    assert!(text.contains("ended (exit 1) without mounting; --mkfs names the command that makes one"), "{text}");
}

#[test]
fn a_file_system_that_uses_pmdk_runs_its_code_for_pm() {
    let folder = space("pmdk");
    let (daemon, mkfs) = build_pmemobjfs(&folder).unwrap();
    let operations = operations(&folder, "crash creat foo\n");
    let words = [
        "fs",
        "check",
        "--progress",
        "never",
        "--strategy",
        "program-order",
        "--mkfs",
        &format!("{} -s 16777216 {{pool}}", mkfs.display()),
        "--fuse",
        &format!("{} -f -s -ohard_remove {{pool}} {{mount}}", daemon.display()),
        "--ops",
        &operations,
    ];
    let mut command = Command::new(FENCEPOST);
    command.env_remove("PMEM_IS_PMEM_FORCE").env_remove("PMEM2_FORCE_GRANULARITY");
    let output = command.args(words).current_dir(&folder).output().unwrap();
    let text = said(&output, 0);
    assert_eq!(text.matches("note: it uses PMDK: PMEM_IS_PMEM_FORCE=1").count(), 1, "{text}");
    assert!(!text.contains("called msync"), "{text}");
}

#[test]
fn a_full_pool_is_no_failure() {
    let folder = space("full");
    let program = build(&folder, 0).unwrap();
    let mut text = String::from("workload full\n");
    for number in 0..9 {
        text.push_str(&format!("creat f{number}\nwrite f{number} 0 30000 seed=1\n"));
    }
    // The last ones have no room.
    text.push_str("crash write f8 30000 4000 seed=2\ncrash creat more\ncrash write more 0 5000 seed=3\n");
    let operations = operations(&folder, &text);
    let output =
        run(&folder, &[check(&program, &program, &operations), vec!["--budget".into(), "20s".into()]].concat());
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}{}", String::from_utf8_lossy(&output.stderr));
    // And it was full: these are the answers of the same daemon to the same operations.
    let (pool, mount) = (folder.join("pool"), folder.join("mount"));
    std::fs::create_dir_all(&mount).unwrap();
    assert!(Command::new(&program).arg("--mkfs").arg(&pool).status().unwrap().success());
    let unmarked = folder.join("unmarked");
    let lines = text.replace("workload full\n", "").replace("crash ", "");
    std::fs::write(&unmarked, &lines).unwrap();
    let answers = Command::new("unshare")
        .args(["-U", "-r", "-m", FENCEPOST, "drive", "fuse", "--mount"])
        .arg(&mount)
        .arg("--")
        .arg(&program)
        .args([pool.as_os_str(), "-f".as_ref(), "-s".as_ref(), mount.as_os_str()])
        .stdin(std::fs::File::open(&unmarked).unwrap())
        .output()
        .unwrap();
    let answers = said(&answers, 0) + &String::from_utf8_lossy(&answers.stdout);
    assert!(answers.contains("ENOSPC") && answers.ends_with("unmounted\n"), "{answers}");
}

/// Random workloads on a daemon that fails some operations without any crash: these are taken out of the workloads, and the rest is
/// crashed. Returns what is said.
fn random(purpose: &str, fault: Fault) -> String {
    let folder = space(purpose);
    let program = build_faulty(&folder, 0, fault).unwrap();
    let words = [
        "fs",
        "check",
        "--progress",
        "never",
        "--no-growth",
        "--strategy",
        "program-order,guaranteed-only",
        "--mkfs",
        &format!("{} --mkfs {{pool}}", program.display()),
        "--fuse",
        &format!("{} {{pool}} -f -s {{mount}}", program.display()),
        "--fuzz",
        "24",
        "--batch",
        "12",
    ];
    let text = said(&run(&folder, &words.map(str::to_owned)), 0);
    assert!(text.contains("for what they do without a crash"), "{text}");
    assert!(!text.contains("a random workload is left out"), "{text}");
    let crashed = text.split("note: crashed ").nth(1).and_then(|rest| rest.split(' ').next());
    assert!(crashed.unwrap().parse::<u32>().unwrap() > 4, "{text}");
    text
}

#[test]
fn what_cannot_be_removed_is_left_out_of_random_workloads_and_stays_in_no_pool() {
    let text = random("keeps", Fault::KeepsSymlinks);
    let mut warnings = text.lines().filter(|line| line.starts_with("warning:"));
    assert!(warnings.all(|line| line.contains("`symlink ")), "{text}");
}

#[test]
fn what_differs_between_two_runs_is_left_out_of_random_workloads() {
    let text = random("noise", Fault::ReadsNoise);
    assert!(text.contains("is not the same in two runs"), "{text}");
}

#[test]
fn no_device_and_no_right_to_mount() {
    let folder = space("rights");
    let program = build(&folder, 0).unwrap();
    let operations = operations(&folder, "creat foo\n");
    let words = check(&program, &program, &operations);
    let masked = "mount --bind /dev/zero /dev/fuse && exec \"$@\"";
    let output =
        Command::new("unshare").args(["-m", "sh", "-c", masked, "sh", FENCEPOST]).args(&words).output().unwrap();
    let text = said(&output, 2);
    assert!(text.contains("there is no /dev/fuse that can be used"), "{text}");
    // No more namespaces, and no helper on the path.
    let locked = "echo 0 > /proc/sys/user/max_mnt_namespaces && PATH=/nowhere exec \"$@\"";
    let output =
        Command::new("unshare").args(["-U", "-r", "sh", "-c", locked, "sh", FENCEPOST]).args(&words).output().unwrap();
    let text = said(&output, 2);
    assert!(text.contains("file systems cannot be mounted here") && text.contains("fuse3"), "{text}");
}

#[test]
fn nothing_is_left_behind_by_kill_9() {
    let folder = space("kill");
    let program = build(&folder, 0).unwrap();
    let mut child = Command::new(FENCEPOST)
        .args(["fs", "check", "--progress", "never"])
        .args(["--mkfs", &format!("{} --mkfs {{pool}}", program.display())])
        .args(["--fuse", &format!("{} {{pool}} -f -s {{mount}}", program.display())])
        .current_dir(&folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let word = program.display().to_string();
    let waits = |until: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !until() {
            assert!(start.elapsed() < Duration::from_secs(60), "{} processes", processes_with(&word));
            sleep(Duration::from_millis(20));
        }
    };
    // The check itself has the word in its command, a driver and a daemon too.
    waits(&|| processes_with(&word) >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    waits(&|| processes_with(&word) == 0);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains("fencepost-fs-"), "{mounts}");
}

/// The first process of a container is the last one of its mount namespace, and its program may lie on a volume.
#[test]
fn the_only_process_of_a_namespace_checks_from_a_volume() {
    let folder = space("volume");
    let program = build(&folder, 0).unwrap();
    let operations = operations(&folder, "creat foo\nrename foo bar\n");
    let volume = folder.join("volume");
    std::fs::create_dir_all(&volume).unwrap();
    let script = "mount --bind \"$(dirname \"$1\")\" \"$0\" && shift && exec \"$0/fencepost\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-U", "-r", "-m", "sh", "-c", script]).arg(&volume).arg(FENCEPOST);
    let output = command.args(check(&program, &program, &operations)).current_dir(&folder).output().unwrap();
    said(&output, 0);
}

/// Runs a script with the words of a check as its arguments where no mount namespace of our own can be had: mounts are for everybody
/// in the script's to see.
fn in_the_open(folder: &Path, script: &str, words: &[String]) -> Output {
    let locked = format!("echo 0 > /proc/sys/user/max_mnt_namespaces || exit 9\n{script}");
    let mut command = Command::new("unshare");
    command.args(["-U", "-r", "-m", "sh", "-c", &locked, "sh", FENCEPOST]).args(words);
    command.current_dir(folder).output().unwrap()
}

#[test]
fn mounts_that_everybody_sees_come_one_at_a_time() {
    let folder = space("open");
    let program = build(&folder, 0).unwrap();
    let operations = operations(&folder, "creat foo\nrename foo bar\n");
    let output = in_the_open(&folder, "exec \"$@\"", &check(&program, &program, &operations));
    let text = said(&output, 0);
    assert!(text.contains("no mount namespace of our own"), "{text}");
    assert!(!text.contains("not deterministic"), "{text}");
}

#[test]
fn a_mount_that_everybody_sees_is_not_left_behind_by_kill_9() {
    let folder = space("open-kill");
    let program = build(&folder, 0).unwrap();
    let operations = operations(&folder, &"creat foo\nunlink foo\n".repeat(60));
    let script = r#"
        "$@" >/dev/null 2>&1 & check=$!
        until grep -q fencepost-fs- /proc/self/mountinfo; do kill -0 $check || exit 10; sleep 0.01; done
        kill -9 $check
        free=0
        for look in $(seq 600); do
            if grep -q fencepost-fs- /proc/self/mountinfo; then free=0; else free=$((free + 1)); fi
            test $free = 20 && exit 0
            sleep 0.1
        done
        cat /proc/self/mountinfo >&2
        exit 11"#;
    said(&in_the_open(&folder, script, &check(&program, &program, &operations)), 0);
}

#[test]
fn the_doctor_says_where_file_systems_are_mounted() {
    let output = Command::new(FENCEPOST).args(["doctor", "--message-format", "json"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.lines().any(|line| line.contains("\"FUSE\"") && line.contains("\"ok\"")), "{text}");
}
