//! Recovery in a guest: puts a crash image into its PM region, mounts the file system and walks it.

use std::time::{Duration, Instant};

use persistency::line::LineId;
use recover::report::RunReport;
use supervise::cancel::Cancel;
use trace::event::{LineNo, PoolId};
use verdict::end::End;
use verdict::read::Read;
use wire::guest::GuestRecordKind;

use crate::machine::{Fall, GuestSpec, Machine, MachineError};
use crate::ring::Record;

/// Exit codes of a recovery in a guest, as of a command's.
pub const NOT_MOUNTED: i32 = 1;
pub const COMPLAINED: i32 = 2;
pub const PANICKED: i32 = 3;

/// Messages of the kernel up to this level (`err`) are complaints.
const COMPLAINT: u32 = 3;

/// A guest that is given one image after the other. It is booted anew only after a panic or a hang.
#[derive(Debug)]
pub struct Guest {
    spec: GuestSpec,
    /// Type, device and options.
    mount: String,
    watched: bool,
    machine: Option<Machine>,
    /// How often it was booted.
    pub boots: u64,
    /// Ends what is under way.
    pub cancel: Cancel,
}

impl Guest {
    pub fn new(spec: GuestSpec, mount: String, watched: bool) -> Guest {
        Guest { spec, mount, watched, machine: None, boots: 0, cancel: Cancel::default() }
    }

    /// Boots it, if it does not run.
    pub fn machine(&mut self) -> Result<&mut Machine, MachineError> {
        let machine = match self.machine.take() {
            Some(machine) => machine,
            None => {
                self.boots += 1;
                Machine::boot(&self.spec, self.watched, &self.cancel)?
            }
        };
        Ok(self.machine.insert(machine))
    }

    /// The region is zero.
    pub fn clear(&mut self) -> Result<(), MachineError> {
        let image = vec![0; self.spec.pm as usize];
        self.machine()?.memory().set_pm(&image);
        Ok(())
    }

    pub fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MachineError> {
        self.machine()?.memory().write_pm(offset, bytes);
        Ok(())
    }

    /// Mounts, walks, uses and unmounts what is in the region.
    pub fn run(&mut self, limit: Duration) -> Result<RunReport, MachineError> {
        let request = format!("log\nrecover {}\nlog\ndrop\n", self.mount);
        let start = Instant::now();
        let cancel = self.cancel.clone();
        let machine = self.machine()?;
        let answer = match machine.ask(&request, limit, &cancel) {
            // In the middle of something: nobody can use it any more.
            Err(MachineError::Cancelled) => {
                self.machine = None;
                return Err(MachineError::Cancelled);
            }
            answer => answer?,
        };
        let records = machine.records();
        let wall = start.elapsed();
        let watched = self.watched;
        let report = match answer {
            Ok(reply) => Ok(read(&reply)),
            Err(Fall::Hung) => Err(End::Hung),
            Err(Fall::Panicked(said)) => {
                // A guest that broke down has to be booted anew.
                self.machine = None;
                let report = Said { end: End::Exited(PANICKED), stdout: String::new(), stderr: panic_line(&said) };
                return Ok(finished(report, wall, None, Vec::new(), true));
            }
        };
        match report {
            Ok(said) => {
                let reads = watched.then(|| lines(&records, GuestRecordKind::ReadLine).map(Read::Line).collect());
                // Nobody knows what an unwatched one has changed.
                Ok(finished(said, wall, reads, lines(&records, GuestRecordKind::WroteLine).collect(), !watched))
            }
            Err(end) => {
                self.machine = None;
                let said = Said { end, stdout: String::new(), stderr: String::new() };
                Ok(finished(said, wall, None, Vec::new(), true))
            }
        }
    }
}

fn lines(records: &[Record], kind: GuestRecordKind) -> impl Iterator<Item = LineId> + '_ {
    let wanted = records.iter().filter(move |record| record.kind == kind);
    wanted.map(|record| LineId { pool: PoolId(0), line: LineNo(record.subject()) })
}

struct Said {
    end: End,
    stdout: String,
    stderr: String,
}

fn finished(said: Said, wall: Duration, reads: Option<Vec<Read>>, dirtied: Vec<LineId>, gone: bool) -> RunReport {
    RunReport {
        end: said.end,
        stdout: said.stdout.into_bytes(),
        stderr: said.stderr.into_bytes(),
        boundaries: Vec::new(),
        output_cut: false,
        cpu: wall,
        wall,
        reads,
        dirtied,
        pools_replaced: gone,
        tree_changed: false,
        outside: Vec::new(),
    }
}

/// From the reply to `log`, `recover`, `log`.
fn read(reply: &str) -> Said {
    // What was said before belongs to the run before.
    let (_, rest) = split(reply);
    let failed = rest.lines().next().and_then(|line| line.strip_prefix("mount ")).map(str::to_owned);
    let (stdout, log) = match &failed {
        Some(_) => ("", rest.split_once('\n').map_or("", |(_, log)| log)),
        None => recovered(rest),
    };
    let complaint = log.lines().filter_map(|line| line.split_once(' '));
    let complaint = complaint.filter(|(level, _)| level.parse().is_ok_and(|level: u32| level <= COMPLAINT));
    let complaint = complaint.map(|(_, text)| text.to_owned()).next();
    let (end, stderr) = match (failed, complaint) {
        (Some(errno), complaint) => {
            let why = complaint.map_or(String::new(), |text| format!(": {text}"));
            (End::Exited(NOT_MOUNTED), format!("the file system cannot be mounted ({errno}){why}\n"))
        }
        (None, Some(complaint)) => (End::Exited(COMPLAINED), format!("the kernel complains: {complaint}\n")),
        (None, None) => (End::Exited(0), String::new()),
    };
    Said { end, stdout: stdout.to_owned(), stderr }
}

/// The answer to `log`, and what follows it.
fn split(reply: &str) -> (&str, &str) {
    match reply.strip_prefix("ok\n") {
        Some(rest) => ("", rest),
        None => reply.split_once("\nok\n").unwrap_or((reply, "")),
    }
}

/// Tree, use and unmount are one part, what the kernel said then is the other.
fn recovered(text: &str) -> (&str, &str) {
    let end = ["\nunmounted\n", "\nunmount "].iter().find_map(|word| {
        let at = text.find(word)? + 1;
        Some(at + text[at..].find('\n')? + 1)
    });
    text.split_at(end.unwrap_or(text.len()))
}

/// What is the same in every run of one panic: its first line.
fn panic_line(said: &str) -> String {
    let first = said.lines().next().unwrap_or_default();
    // `[    3.151111] BUG: …`
    let first = first.split_once("] ").map_or(first, |(_, text)| text);
    format!("{said}\nthe kernel panicked: {first}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "dir . mode=755 links=2 owner=0:0\nok\nok\nunmounted\n";

    #[test]
    fn replies() {
        let said = read(&format!("6 hello\n4 world\nok\n{TREE}6 EXT4-fs: mounted\nok\n"));
        assert_eq!((said.end, said.stdout.as_str()), (End::Exited(0), TREE));
        let said = read(&format!("ok\n{TREE}3 EXT4-fs error: bad\nok\n"));
        assert_eq!(
            (said.end, said.stderr.as_str()),
            (End::Exited(COMPLAINED), "the kernel complains: EXT4-fs error: bad\n")
        );
        // What was said before is not of this run.
        assert_eq!(read(&format!("3 old trouble\nok\n{TREE}ok\n")).end, End::Exited(0));
        let said = read("ok\nmount EINVAL\n3 bad superblock\nok\n");
        assert_eq!(said.end, End::Exited(NOT_MOUNTED));
        assert_eq!(said.stderr, "the file system cannot be mounted (EINVAL): bad superblock\n");
    }

    #[test]
    fn altered_replies() {
        let replies = [
            format!("6 hello\nok\n{TREE}6 EXT4-fs: mounted\nok\n"),
            format!("ok\n{TREE}3 EXT4-fs error: bad\nok\n"),
            "ok\nmount EINVAL\n3 bad superblock\nok\n".to_owned(),
            "[    3.15] BUG: unable to handle page fault\n[    3.16] more".to_owned(),
        ];
        parser_tests::hammer::hammer("guest-reply", &replies.map(String::into_bytes), &|input| {
            let reply = String::from_utf8_lossy(input);
            drop(read(&reply));
            drop(panic_line(&reply));
        });
    }

    #[test]
    fn a_panic_is_told_by_its_first_line() {
        let said = panic_line("[    3.15] BUG: unable to handle page fault\n[    3.16] more");
        assert!(said.ends_with("the kernel panicked: BUG: unable to handle page fault\n"), "{said}");
    }
}
