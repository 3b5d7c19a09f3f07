//! Runs of recoveries as plain data, to be told to others: what each read, in order, and its verdict.
//!
//! Runs read much the same: each is written from where it differs from the one before.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use verdict::contradiction::Contradiction;
use verdict::read::Read;
use verdict::verdict::Verdict;

use crate::image::LineBytes;

/// Looks that are told at once; the runs of one unit seldom have more.
const MOST_STEPS: usize = 1 << 20;

/// Some runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownRuns {
    looks: Vec<Read>,
    /// One after the other.
    #[serde(with = "fleet::text")]
    contents: Vec<u8>,
    verdicts: Vec<Verdict>,
    runs: Vec<Run>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    /// Steps that are those of the run before.
    same: usize,
    /// Looks and contents, by number.
    steps: Vec<(u32, u32)>,
    verdict: u32,
}

impl KnownRuns {
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Each run, until one is refused. What makes no sense is left out.
    pub(super) fn each(
        &self,
        mut take: impl FnMut(&[(Read, LineBytes)], &Verdict) -> Result<(), Contradiction>,
    ) -> Result<(), Contradiction> {
        let content = |number: u32| -> Option<LineBytes> {
            let start = number as usize * 64;
            self.contents.get(start..start + 64)?.try_into().ok()
        };
        let mut path: Vec<(Read, LineBytes)> = Vec::new();
        for run in &self.runs {
            path.truncate(run.same);
            let steps: Option<Vec<(Read, LineBytes)>> = run
                .steps
                .iter()
                .map(|&(look, bytes)| Some((*self.looks.get(look as usize)?, content(bytes)?)))
                .collect();
            let (Some(steps), Some(verdict)) = (steps, self.verdicts.get(run.verdict as usize)) else { return Ok(()) };
            path.extend(steps);
            take(&path, verdict)?;
        }
        Ok(())
    }
}

/// Writes runs.
#[derive(Debug, Default)]
pub(super) struct RunsWriter {
    runs: KnownRuns,
    looks: FxHashMap<Read, u32>,
    contents: FxHashMap<u32, u32>,
    verdicts: FxHashMap<Verdict, u32>,
    before: Vec<(u32, u32)>,
    steps: usize,
}

impl RunsWriter {
    /// Contents are given by a number, and asked for once.
    pub fn add(
        &mut self,
        steps: impl Iterator<Item = (Read, u32)>,
        bytes: impl Fn(u32) -> LineBytes,
        verdict: &Verdict,
    ) {
        if self.steps > MOST_STEPS {
            return;
        }
        let mut path: Vec<(u32, u32)> = Vec::new();
        for (look, content) in steps {
            let next = self.looks.len() as u32;
            let look = *self.looks.entry(look).or_insert_with(|| {
                self.runs.looks.push(look);
                next
            });
            let next = self.contents.len() as u32;
            let content = *self.contents.entry(content).or_insert_with(|| {
                self.runs.contents.extend(bytes(content));
                next
            });
            path.push((look, content));
        }
        let same = path.iter().zip(&self.before).take_while(|(own, before)| own == before).count();
        let next = self.verdicts.len() as u32;
        let verdict = *self.verdicts.entry(verdict.clone()).or_insert_with(|| {
            self.runs.verdicts.push(verdict.clone());
            next
        });
        self.steps += path.len() - same;
        self.runs.runs.push(Run { same, steps: path[same..].to_vec(), verdict });
        self.before = path;
    }

    pub fn finish(self) -> KnownRuns {
        self.runs
    }
}
