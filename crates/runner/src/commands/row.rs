//! A recovery as a row of runs, one per operation.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crash::image::LineBytes;
use drive::driver::Driver;
use drive::template;
use persistency::line::LineId;
use recover::command::{Command, Input, Operations};
use recover::limits::Limits;
use recover::report::RunReport;
use recover::server::{Server, ServerError};
use recover::slot::Slot;
use rustc_hash::{FxHashMap, FxHashSet};
use supervise::cancel::Cancel;
use verdict::end::{End, Frame};
use verdict::read::Read;

use super::effects::{Effect, Effects, Ended};
use super::lines::{PageId, SlotLines};
use crate::runner::RunnerError;

/// Command lines that wait in a server: each is two processes with their memory.
const MOST_SERVERS: usize = 48;

/// One of so many known effects is looked at again.
const LOOKED_AT_AGAIN: u64 = 256;

/// Which command: where its operation stands in the text of all, which is one place behind [`FIRST`]'s.
type Turn = u64;

/// The command before the first operation.
const FIRST: Turn = 0;

/// What a command depends on beside the lines that it sees.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Situation {
    turn: Turn,
    /// The files beside the pools, and the lengths of the pools.
    surroundings: usize,
}

/// What became of a row.
#[derive(Debug)]
pub(crate) enum Row {
    /// The report is that of a driver which starts these commands one after the other; and where the first one died that did.
    Ran(Box<RunReport>, Vec<Frame>),
    /// The commands cannot be run apart from each other. The slot must be shown anew.
    Inseparable,
}

/// Fork servers for the commands of a driver.
#[derive(Debug)]
pub(crate) struct Commands {
    first: Option<Vec<OsString>>,
    template: Vec<OsString>,
    /// Environment and folder.
    like: Command,
    cancel: Cancel,
    real_time: bool,
    /// The one that was used last is at the end.
    servers: Vec<(Vec<OsString>, Server)>,
    lines: SlotLines,
    effects: Effects<Situation>,
    /// Pages that a command has changed before: how they were must be known when it changes them again.
    changed_pages: FxHashMap<Turn, FxHashSet<PageId>>,
    surroundings: Vec<(u128, Vec<u64>)>,
    /// That of the image in the slot; none: something has changed its files.
    here: Option<usize>,
    found: u64,
    /// Processes that saw the same did the same so far.
    pub remembers: bool,
    /// Processes leave more to those that follow them than the pools.
    inseparable: bool,
}

/// A row as far as it has got.
#[derive(Default)]
struct Sofar {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    boundaries: Vec<u32>,
    cut: bool,
    cpu: Duration,
    reads: Option<Vec<Read>>,
    noted: FxHashSet<LineId>,
    dirtied: Vec<LineId>,
    tree_changed: bool,
    outside: Vec<std::path::PathBuf>,
    died_at: Vec<Frame>,
}

/// How a command ended.
enum Turned {
    Ended(Ended),
    /// It did not end by itself; with what it wrote.
    Stopped(End, Ended),
    Inseparable,
}

impl Commands {
    /// For a recovery that is a driver of commands.
    pub fn of(recovery: &Command, cancel: &Cancel, real_time: bool) -> Option<Commands> {
        let words = std::iter::once(recovery.program.as_os_str()).chain(recovery.args.iter().map(OsString::as_os_str));
        let words: Vec<String> = words.map(|word| word.to_str().map(str::to_owned)).collect::<Option<_>>()?;
        let commands = Driver::of(&words)?.commands()?;
        Some(Commands {
            first: commands.first.map(template::words).transpose().ok()?,
            template: commands.template.iter().map(OsString::from).collect(),
            like: recovery.clone(),
            cancel: cancel.clone(),
            real_time,
            servers: Vec::new(),
            lines: SlotLines::default(),
            effects: Effects::default(),
            changed_pages: FxHashMap::default(),
            surroundings: Vec::new(),
            here: None,
            found: 0,
            remembers: true,
            inseparable: false,
        })
    }

    /// How often it was known what a command does.
    pub fn known(&self) -> u64 {
        self.found
    }

    /// The slot was filled anew.
    pub fn filled(&mut self) {
        self.lines.clear();
    }

    /// A line of the slot was written.
    pub fn put(&mut self, line: LineId, bytes: &LineBytes) {
        self.lines.put(line, bytes);
    }

    /// The slot now shows an image with files of this identity.
    pub fn shown(&mut self, files: u128, lengths: Vec<u64>) {
        let here = (files, lengths);
        let known = self.surroundings.iter().position(|known| *known == here);
        self.here = Some(known.unwrap_or_else(|| {
            self.surroundings.push(here);
            self.surroundings.len() - 1
        }));
    }

    /// Somebody else works on the slot.
    pub fn left_alone(&mut self) {
        self.lines.clear();
        self.here = None;
    }

    /// Runs the commands of these operations on what the slot holds.
    pub fn run(
        &mut self,
        slot: &mut Slot,
        text: &[u8],
        byte_ranges: &[Range<u64>],
        limits: &Limits,
    ) -> Result<Row, RunnerError> {
        if self.inseparable {
            return Ok(Row::Inseparable);
        }
        let begun = Instant::now();
        self.lines.limit();
        let mut sofar = Sofar { reads: Some(Vec::new()), ..Sofar::default() };
        let mut end = End::Exited(0);
        if let Some(first) = self.first.clone() {
            match self.turn(slot, FIRST, first, limits, &mut sofar)? {
                Turned::Ended(Ended { status: 0, mut stdout, mut stderr }) => {
                    sofar.stderr.append(&mut stdout);
                    sofar.stderr.append(&mut stderr);
                }
                // What is said then is the driver's affair.
                _ => return Ok(self.apart()),
            }
        }
        for (at, operation) in operations(text, byte_ranges) {
            sofar.boundaries.push(sofar.stdout.len() as u32);
            let words = template::filled(&self.template, operation);
            // An empty operation in a template of nothing else leaves no word.
            let turned = match words.is_empty() {
                true => Turned::Ended(Ended { status: 0, stdout: Vec::new(), stderr: Vec::new() }),
                false => self.turn(slot, at + 1, words, limits, &mut sofar)?,
            };
            let (mut ended, stopped) = match turned {
                Turned::Ended(mut ended) => {
                    let how = drive::command::how(ExitStatus::from_raw(ended.status));
                    ended.stdout.extend_from_slice(format!("{how}\n").as_bytes());
                    (ended, None)
                }
                Turned::Stopped(end, ended) => (ended, Some(end)),
                Turned::Inseparable => return Ok(self.apart()),
            };
            sofar.stdout.append(&mut ended.stdout);
            sofar.stderr.append(&mut ended.stderr);
            if let Some(stopped) = stopped {
                end = stopped;
                break;
            }
        }
        if end == End::Exited(0) {
            sofar.boundaries.push(sofar.stdout.len() as u32);
        }
        let died_at = std::mem::take(&mut sofar.died_at);
        Ok(Row::Ran(Box::new(sofar.report(end, limits, begun.elapsed())), died_at))
    }

    /// This row cannot be told.
    fn apart(&mut self) -> Row {
        self.left_alone();
        Row::Inseparable
    }

    /// One command, or what it is known to do.
    fn turn(
        &mut self,
        slot: &mut Slot,
        turn: Turn,
        words: Vec<OsString>,
        limits: &Limits,
        sofar: &mut Sofar,
    ) -> Result<Turned, RunnerError> {
        let key = self.here.filter(|_| self.remembers).map(|surroundings| Situation { turn, surroundings });
        if let Some(key) = &key {
            let (effects, lines) = (&self.effects, &mut self.lines);
            let found = effects.find(key, |line| lines.get(slot, line))?;
            let found = found.map(|(effect, seen)| (effect.clone(), seen));
            self.found += u64::from(found.is_some());
            if let Some((effect, seen)) = found.filter(|_| self.found % LOOKED_AT_AGAIN != 1) {
                for (line, bytes) in &effect.changed {
                    slot.write(line.pool, line.start().offset.0, bytes)?;
                    self.lines.put(*line, bytes);
                    sofar.dirtied.push(*line);
                }
                sofar.note(&seen[..effect.reads.min(seen.len())]);
                sofar.died(&effect.died_at);
                return Ok(Turned::Ended(effect.ended));
            }
        }
        self.really(slot, turn, key, words, limits, sofar)
    }

    fn really(
        &mut self,
        slot: &mut Slot,
        turn: Turn,
        key: Option<Situation>,
        words: Vec<OsString>,
        limits: &Limits,
        sofar: &mut Sofar,
    ) -> Result<Turned, RunnerError> {
        for page in self.changed_pages.get(&turn).into_iter().flatten() {
            self.lines.load(slot, *page)?;
        }
        let (status, left_behind, died_at, run) = {
            let server = self.server(words, slot)?;
            server.turn = turn;
            let run = server.run(slot, limits)?;
            (server.status, server.left_behind, server.broke_down_at.clone(), run)
        };
        let by_itself = match &run.end {
            End::Exited(_) => true,
            // Another process of the run may have died so.
            End::Signalled { signal, .. } => libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == *signal,
            End::Hung | End::OverLimit(_) => false,
        };
        self.inseparable |= by_itself && left_behind;
        let is_another = !by_itself && matches!(run.end, End::Signalled { .. });
        if is_another || by_itself && (run.pools_replaced || left_behind) {
            return Ok(Turned::Inseparable);
        }
        let died_at = if matches!(run.end, End::Exited(_)) { Vec::new() } else { died_at };
        sofar.died(&died_at);
        sofar.add(&run);
        let status = match run.end {
            // One that used no pool never came to its fork point.
            End::Exited(code) => (code & 0xff) << 8,
            End::Signalled { signal, .. } => signal,
            _ => 0,
        };
        let ended = Ended { status, stdout: run.stdout, stderr: run.stderr };
        if !by_itself {
            self.left_alone();
            return Ok(Turned::Stopped(run.end, ended));
        }
        let changed: FxHashSet<LineId> = run.dirtied.iter().copied().collect();
        let seen = match (&key, &run.reads) {
            (Some(_), Some(reads)) if !run.tree_changed && run.outside.is_empty() => {
                self.seen(slot, reads, &run.dirtied, &changed)?
            }
            _ => None,
        };
        // Of the lines: a length that was read is none of them.
        let reads = run.reads.iter().flatten().filter_map(line_of).collect::<FxHashSet<LineId>>().len();
        let mut effect = Effect { ended, changed: Vec::new(), reads, died_at };
        let pages = self.changed_pages.entry(turn).or_default();
        for line in changed {
            let mut bytes = [0; size_of::<LineBytes>()];
            slot.read(line.pool, line.start().offset.0, &mut bytes)?;
            self.lines.put(line, &bytes);
            pages.insert(PageId::of(line));
            effect.changed.push((line, bytes));
        }
        effect.changed.sort_unstable_by_key(|(line, _)| *line);
        if run.tree_changed {
            self.here = None;
        }
        let ended = effect.ended.clone();
        if let (Some(key), Some(seen)) = (key, seen)
            && self.effects.insert(key, &seen, effect).is_err()
        {
            self.remembers = false;
            self.effects = Effects::default();
        }
        Ok(Turned::Ended(ended))
    }

    /// The lines that a run has read, then those that it has only changed, as they were before; none if that is not known.
    fn seen(
        &mut self,
        slot: &Slot,
        reads: &[Read],
        dirtied: &[LineId],
        changed: &FxHashSet<LineId>,
    ) -> Result<Option<Vec<(LineId, LineBytes)>>, RunnerError> {
        // First: what is loaded from now on is as the run has left it.
        let before: Option<FxHashMap<LineId, LineBytes>> =
            changed.iter().map(|&line| Some((line, self.lines.known(line)?))).collect();
        let Some(before) = before else { return Ok(None) };
        let mut once = FxHashSet::default();
        let mut seen = Vec::with_capacity(reads.len() + dirtied.len());
        let read = reads.iter().filter_map(line_of);
        for line in read.chain(dirtied.iter().copied()) {
            if !once.insert(line) {
                continue;
            }
            let bytes = match before.get(&line) {
                Some(bytes) => *bytes,
                None => self.lines.get(slot, line)?,
            };
            seen.push((line, bytes));
        }
        Ok(Some(seen))
    }

    fn server(&mut self, words: Vec<OsString>, slot: &Slot) -> Result<&mut Server, ServerError> {
        let known = self.servers.iter().position(|(known, _)| *known == words);
        let entry = match known {
            Some(at) => self.servers.remove(at),
            None => {
                let command = Command {
                    program: words[0].clone().into(),
                    args: words[1..].to_vec(),
                    // Its standard output is taken for a terminal, as under a driver.
                    stdin: Input::Operations(Operations::default()),
                    ..self.like.clone()
                };
                let mut server = Server::new(&command, slot)?;
                server.cancel = self.cancel.clone();
                server.real_time = self.real_time;
                (words, server)
            }
        };
        if self.servers.len() >= MOST_SERVERS {
            self.servers.remove(0);
        }
        self.servers.push(entry);
        Ok(&mut self.servers.last_mut().expect("just added").1)
    }
}

impl Sofar {
    /// A command has died here; the first one counts.
    fn died(&mut self, at: &[Frame]) {
        if self.died_at.is_empty() {
            self.died_at = at.to_vec();
        }
    }

    fn note(&mut self, lines: &[LineId]) {
        if let Some(reads) = &mut self.reads {
            let noted = &mut self.noted;
            reads.extend(lines.iter().filter(|line| noted.insert(**line)).map(|line| Read::Line(*line)));
        }
    }

    fn add(&mut self, run: &RunReport) {
        self.cut |= run.output_cut;
        self.cpu += run.cpu;
        self.tree_changed |= run.tree_changed;
        self.dirtied.extend(&run.dirtied);
        self.outside.extend(run.outside.iter().cloned());
        match &run.reads {
            None => self.reads = None,
            Some(more) => {
                let lines: Vec<LineId> = more.iter().filter_map(line_of).collect();
                self.note(&lines);
            }
        }
    }

    fn report(mut self, end: End, limits: &Limits, wall: Duration) -> RunReport {
        let most = limits.output as usize;
        for stream in [&mut self.stdout, &mut self.stderr] {
            self.cut |= stream.len() > most;
            stream.truncate(most);
        }
        let over = matches!(end, End::OverLimit(_));
        RunReport {
            end,
            stdout: self.stdout,
            stderr: self.stderr,
            boundaries: self.boundaries,
            output_cut: self.cut,
            cpu: self.cpu,
            wall,
            reads: self.reads,
            dirtied: self.dirtied,
            pools_replaced: over,
            tree_changed: self.tree_changed,
            outside: self.outside,
        }
    }
}

fn line_of(read: &Read) -> Option<LineId> {
    match read {
        Read::Line(line) => Some(*line),
        Read::Length(_) => None,
    }
}

/// Each operation, without the end of its line, and where it stands.
fn operations<'a>(text: &'a [u8], byte_ranges: &'a [Range<u64>]) -> impl Iterator<Item = (u64, &'a [u8])> {
    byte_ranges.iter().flat_map(|range| {
        let mut at = range.start;
        let lines = text[range.start as usize..range.end as usize].split_inclusive(|&byte| byte == b'\n');
        lines.map(move |line| {
            let begin = at;
            at += line.len() as u64;
            (begin, line.strip_suffix(b"\n").unwrap_or(line))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_lines_of_the_ranges() {
        let text = b"a 1\nb\n\nc";
        let all: Vec<_> = operations(text, &[0..4, 6..8]).collect();
        assert_eq!(all, [(0, &b"a 1"[..]), (6, b""), (7, b"c")]);
    }
}
