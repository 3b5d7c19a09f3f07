//! Recoveries that are no processes: a deterministic function of what it looks at, chosen at random.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};

use crash::image::{CrashImage, LineBytes};
use crash::recovery::{Observation, Recovery, RecoveryError};
use persistency::line::LineId;
use trace::{LineNo, PoolId};
use verdict::read::Read;
use verdict::symptom::{Failure, Party, Symptom};
use verdict::verdict::Verdict;

use crate::traces::Rng;

/// What one run saw: every look and what was there.
pub type Sight = Vec<(Read, LineBytes)>;

/// An image that notes what is read of it.
pub struct Watched<'i, 'g> {
    image: &'i CrashImage<'g>,
    sight: RefCell<Sight>,
    known: RefCell<HashSet<Read>>,
}

impl Watched<'_, '_> {
    pub fn line(&self, pool: u32, line: u64) -> LineBytes {
        let id = LineId { pool: PoolId(pool), line: LineNo(line) };
        let bytes = self.image.line(id);
        self.note(Read::Line(id), bytes);
        bytes
    }

    pub fn length(&self, pool: u32) -> u64 {
        let len = self.image.guaranteed().len(PoolId(pool));
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&len.to_le_bytes());
        self.note(Read::Length(PoolId(pool)), bytes);
        len
    }

    fn note(&self, read: Read, bytes: LineBytes) {
        if self.known.borrow_mut().insert(read) {
            self.sight.borrow_mut().push((read, bytes));
        }
    }
}

type Program = dyn Fn(&Watched<'_, '_>) -> Verdict + Send + Sync;

#[derive(Clone)]
pub struct Fake {
    program: Arc<Program>,
    /// Says what was read.
    pub tells: bool,
    /// All that was ever seen, if somebody wants to know.
    pub sights: Option<Arc<Mutex<BTreeSet<Sight>>>>,
}

impl Fake {
    pub fn new(program: impl Fn(&Watched<'_, '_>) -> Verdict + Send + Sync + 'static) -> Fake {
        Fake { program: Arc::new(program), tells: true, sights: None }
    }

    /// Looks here and there; where next, whether at all, and how it ends depend on what it has seen.
    pub fn random(seed: u64) -> Fake {
        Fake::new(move |image| {
            let mut rng = Rng(seed);
            let lines = [(0, 0), (0, 1), (0, 2), (0, 63), (0, 64), (0, 65), (1, 0), (1, 2), (1, 3), (0, 30)];
            for _ in 0..2 + seed % 9 {
                if rng.below(8) == 0 {
                    rng.0 ^= image.length(0);
                }
                let (pool, line) = lines[rng.below(lines.len() as u64) as usize];
                // Some bytes of the line do not matter.
                for byte in image.line(pool, line).into_iter().step_by(1 + seed as usize % 4) {
                    rng.0 = rng.0.wrapping_mul(31).wrapping_add(byte.into());
                }
                if rng.below(6) == 0 {
                    break;
                }
            }
            match rng.below(8) {
                0 => exits(1),
                1 => exits(11),
                _ => Verdict::Pass,
            }
        })
    }

    /// Reads hundreds of lines in a row, as a scan of a heap does, and leaves some out when it sees something.
    pub fn scanning(seed: u64) -> Fake {
        Fake::new(move |image| {
            let mut rng = Rng(seed);
            let mut line = 0;
            while line < 240 {
                // Beyond the end of the pool there are zeros: always the same.
                let stride = if line < 70 { 1 + rng.below(2) } else { 1 };
                let bytes = image.line(0, if rng.0.is_multiple_of(5) { 239 - line } else { line });
                let sum: u64 = bytes.iter().map(|&byte| u64::from(byte)).sum();
                if sum % 4 == 3 {
                    rng.0 ^= sum;
                    line += rng.below(40);
                }
                line += stride;
            }
            if rng.below(4) == 0 { exits(1) } else { Verdict::Pass }
        })
    }

    pub fn silent(mut self) -> Fake {
        self.tells = false;
        self
    }

    /// All states of a run: what the program says to this image, and what it saw.
    pub fn look(&self, image: &CrashImage<'_>) -> (Verdict, Sight) {
        let watched = Watched { image, sight: RefCell::default(), known: RefCell::default() };
        let verdict = (self.program)(&watched);
        (verdict, watched.sight.into_inner())
    }
}

impl Recovery for Fake {
    fn run(&mut self, image: &CrashImage<'_>) -> Result<Observation, RecoveryError> {
        let (verdict, sight) = self.look(image);
        let reads = self.tells.then(|| sight.iter().map(|(read, _)| *read).collect());
        if let Some(sights) = &self.sights {
            sights.lock().unwrap().insert(sight);
        }
        Ok(Observation { verdict, reads })
    }
}

/// A failure with this exit code.
pub fn exits(code: i32) -> Verdict {
    Verdict::fail(Symptom::Failed { by: Party::Recovery, how: Failure::Exit { code, complaint: None } })
}
