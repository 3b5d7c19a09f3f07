//! Answers the host's requests, one after the other.

use std::fmt::Write as _;
use std::fs::{self as files, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use fs::agent::UNUSABLE;
use fs::errno::Errno;
use fs::execute::Executor;
use fs::op::Op;
use fs::usable::usable;
use fs::walk::walk;
use wire::guest::Mark;

use crate::kernel::{self, Log};
use crate::mailbox::Mailbox;

const ROOT: &str = "/mnt";
/// A mount may be busy for a moment after the last file was closed.
const BUSY_LOOKS: u32 = 200;
const DEVICE_LOOKS: u32 = 3000;
const PAUSE: Duration = Duration::from_millis(1);

struct Guest {
    mailbox: Mailbox,
    executor: Executor,
    log: Log,
    /// The number of the next operation.
    next: u64,
}

/// Until the host closes the line.
pub fn requests(bell: &File) -> Result<(), String> {
    let mut guest = Guest { mailbox: Mailbox::open()?, executor: Executor::new(ROOT), log: Log::open(), next: 0 };
    let mut bell = bell;
    let broken = |error: std::io::Error| format!("the line to the host: {error}");
    // Says that we are there.
    bell.write_all(b"!").map_err(broken)?;
    let mut byte = [0];
    while bell.read(&mut byte).map_err(broken)? > 0 {
        let request = guest.mailbox.request();
        let mut reply = String::new();
        for line in request.lines() {
            guest.answer(line, &mut reply);
        }
        guest.mailbox.reply(&reply);
        bell.write_all(b".").map_err(broken)?;
    }
    Ok(())
}

/// Drivers may still be at work when their modules are loaded.
fn device(path: &str) -> &'static str {
    for _ in 0..DEVICE_LOOKS {
        if Path::new(path).exists() {
            return "ok";
        }
        sleep(PAUSE);
    }
    "missing"
}

impl Guest {
    fn answer(&mut self, line: &str, reply: &mut String) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((&first, rest)) = words.split_first() else { return };
        // Writing to a string does not fail.
        let _ = match first {
            "mount" => {
                let word = |number: usize| rest.get(number).copied().unwrap_or_default();
                let mounted = kernel::mount(word(0), word(1), ROOT, word(2));
                writeln!(reply, "{}", mounted.map_or_else(|errno| errno.to_string(), |()| "ok".into()))
            }
            "unmount" => writeln!(reply, "{}", self.unmount()),
            "recover" => self.recover(rest, reply),
            "exec" => self.exec(rest, reply),
            "record" => self.switch(Mark::Record),
            "observe" => self.switch(Mark::Observe),
            "cover" => self.switch(Mark::Cover),
            "quiet" => self.switch(Mark::Quiet),
            "symbols" => write!(reply, "{}", files::read_to_string("/proc/kallsyms").unwrap_or_default()),
            "modules" => write!(reply, "{}", files::read_to_string("/proc/modules").unwrap_or_default()),
            "device" => writeln!(reply, "{}", device(rest.first().copied().unwrap_or_default())),
            "filesystems" => write!(reply, "{}", files::read_to_string("/proc/filesystems").unwrap_or_default()),
            "sections" => {
                let module = rest.first().copied().unwrap_or_default();
                write!(reply, "{}", kernel::sections(module))
            }
            "log" => writeln!(reply, "{}ok", self.log.news()),
            "drop" => {
                kernel::drop_caches();
                Ok(())
            }
            "walk" => writeln!(reply, "{}ok", walk(Path::new(ROOT))),
            "usable" => {
                self.executor.close_all();
                match usable(Path::new(ROOT)) {
                    Ok(()) => writeln!(reply, "ok"),
                    Err(unusable) => writeln!(reply, "{UNUSABLE}{unusable}"),
                }
            }
            _ => match line.parse::<Op>() {
                Ok(op) => {
                    self.mailbox.mark(Mark::OperationBegin, self.next);
                    let answer = self.executor.run(&op);
                    self.mailbox.mark(Mark::OperationEnd, self.next);
                    self.next += 1;
                    writeln!(reply, "{answer}")
                }
                Err(error) => writeln!(reply, "? {error}"),
            },
        };
    }

    /// Mounts what a crash has left, looks at it, uses it, and unmounts it.
    fn recover(&mut self, words: &[&str], reply: &mut String) -> std::fmt::Result {
        let word = |number: usize| words.get(number).copied().unwrap_or_default();
        self.switch(Mark::Observe)?;
        let mounted = kernel::mount(word(0), word(1), ROOT, word(2));
        if let Err(errno) = mounted {
            writeln!(reply, "mount {errno}")?;
        } else {
            self.answer("walk", reply);
            self.answer("usable", reply);
            writeln!(reply, "{}", self.unmount())?;
        }
        self.switch(Mark::Quiet)
    }

    fn switch(&mut self, mark: Mark) -> std::fmt::Result {
        self.next = 0;
        self.mailbox.mark(mark, 0);
        Ok(())
    }

    fn unmount(&mut self) -> String {
        self.executor.close_all();
        for _ in 0..BUSY_LOOKS {
            match kernel::unmount(ROOT) {
                Err(Errno(libc::EBUSY)) => sleep(PAUSE),
                Err(errno) => return format!("unmount {errno}"),
                Ok(()) => return "unmounted".into(),
            }
        }
        format!("unmount {}", Errno(libc::EBUSY))
    }

    fn exec(&mut self, words: &[&str], reply: &mut String) -> std::fmt::Result {
        let Some((program, arguments)) = words.split_first() else { return writeln!(reply, "exit 127") };
        match Command::new(program).args(arguments).env("PATH", "/bin").output() {
            Ok(output) => {
                for text in [&output.stdout, &output.stderr] {
                    for line in String::from_utf8_lossy(text).lines().filter(|line| !line.trim().is_empty()) {
                        writeln!(reply, "| {line}")?;
                    }
                }
                writeln!(reply, "exit {}", output.status.code().unwrap_or(128))
            }
            Err(error) => writeln!(reply, "| {error}\nexit 127"),
        }
    }
}
