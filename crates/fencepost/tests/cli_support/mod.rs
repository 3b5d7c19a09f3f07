//! A temporary directory and the `fencepost` command in it.

pub mod deny;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

pub struct Sandbox {
    directory: TempDir,
}

/// What a command printed and how it ended.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    #[track_caller]
    pub fn expect(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in: {}", self.err);
        }
    }

    /// The exit code and everything that was said, but notes, as `tests/errors` has it. docs/design/error-paths.md lists them.
    #[track_caller]
    pub fn golden(&self, name: &str) {
        self.golden_lines(name, self.err.lines().filter(|line| !line.starts_with(NOTE)));
    }

    /// The same with the notes that begin with these words; others may be about the machine.
    #[track_caller]
    pub fn golden_note(&self, name: &str, words: &str) {
        let wanted = |line: &&str| line.strip_prefix(NOTE).is_none_or(|note| note.starts_with(words));
        self.golden_lines(name, self.err.lines().filter(wanted));
    }

    /// The findings as people read them, without what the C library does before `main`.
    #[track_caller]
    pub fn golden_findings(&self, name: &str) {
        let findings = self.out.lines().take_while(|line| !line.starts_with("tested "));
        // Without its debug files the C library's own frames have no name.
        let is_early = |line: &str| line.contains("_start") || line.contains("? (libc.so.6+");
        self.golden_lines(name, findings.filter(|line| !is_early(line)));
    }

    /// The exit code and these of the lines.
    #[track_caller]
    pub fn golden_lines<'a>(&self, name: &str, lines: impl Iterator<Item = &'a str>) {
        let told: Vec<String> = lines.map(same_everywhere).collect();
        let text = format!("exit code {}\n{}", self.code.expect("an exit code"), told.join("\n"));
        insta::with_settings!(
            { prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => "../errors" },
            { insta::assert_snapshot!(name, text) }
        );
    }
}

const NOTE: &str = "note: ";

/// Longer than any command of the tests takes on a busy machine.
const LONGEST_SECONDS: &str = "180";

/// Without the names of temporary folders, of their pools, and of the programs of these tests, and what depends on them.
fn same_everywhere(line: &str) -> String {
    let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).display().to_string();
    let mut text = line.replace(&programs, "[programs]").replace(env!("CARGO_MANIFEST_DIR"), "[crate]");
    let folder = format!("{}/.tmp", std::env::temp_dir().display());
    let pool = format!("pool-{}-", std::process::id());
    let socket = format!("{}/fencepost-", std::env::temp_dir().display());
    // Where code lies depends on the compiler.
    for (begins, by) in [(folder, "[folder]"), (pool, "[pool]"), (socket, "[socket]"), ("0x".to_owned(), "[address]")] {
        while let Some(at) = text.find(&begins) {
            let rest = &text[at + begins.len()..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            text.replace_range(at..at + begins.len() + end, by);
        }
    }
    // So do the identities of findings.
    for word in line.split(|c: char| !c.is_ascii_alphanumeric()) {
        if word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
            text = text.replace(word, "[finding]");
        }
    }
    // Seconds that a recovery was waited for.
    if let Some((before, rest)) = text.split_once(" was not done after ")
        && let Some((_, after)) = rest.split_once(" s (")
    {
        text = format!("{before} was not done after [time] s ({after}");
    }
    // Paths are part of a trace and move what comes behind them.
    if let Some(at) = text.find(" at byte ")
        && let Some(end) = text[at..].find(')')
    {
        text.replace_range(at..=at + end, " [at a place]");
    }
    text
}

impl Sandbox {
    pub fn new() -> Sandbox {
        Sandbox { directory: tempfile::tempdir().expect("temporary directory") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.prepared(Command::new(env!("CARGO_BIN_EXE_fencepost")), arguments)
    }

    fn prepared(&self, mut command: Command, arguments: &[&str]) -> Command {
        // On a busy machine a command may take long enough to show some.
        command.args(arguments).current_dir(self.directory.path()).env("FENCEPOST_PROGRESS", "never");
        // In a background job of a plain shell these are ignored, and Fencepost leaves them so.
        // SAFETY: `signal` is async-signal-safe and touches nothing of the parent's.
        unsafe {
            command.pre_exec(|| {
                for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            });
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().expect("fencepost starts").into()
    }

    /// Under `timeout`, without standard input.
    pub fn run_limited(&self, arguments: &[&str]) -> Ran {
        let mut timeout = Command::new("timeout");
        timeout.args(["-k", "5", LONGEST_SECONDS, env!("CARGO_BIN_EXE_fencepost")]);
        self.prepared(timeout, arguments).stdin(Stdio::null()).output().expect("timeout starts").into()
    }
}

/// The target program of `tests/programs`, built once per test binary.
pub fn pool_program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let out = directory.join("pool-program");
        let fresh = directory.join(format!("pool-program-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/pool.c");
        let status = Command::new("cc").args(["-O1", "-g", "-o"]).arg(&fresh).arg(source).status();
        assert!(status.expect("cc is installed").success());
        // Renamed when whole: other test processes may be using or building it.
        fs::rename(&fresh, &out).expect("the same directory");
        out
    })
}
