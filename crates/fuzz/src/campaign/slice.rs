//! A slice of a campaign, or the check of one case, in a folder of its own: what another machine performs and sends back.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::findings::{Found, copy};
use super::run::{CampaignError, FuzzCampaign, Shared};
use super::snapshot;
use super::state::{State, Unit};
use crate::case::{Case, CaseId};
use crate::corpus::failed;
use crate::coverage::Trail;
use crate::execute::Executor;
use crate::tree::Node;

pub(super) const DONE: &str = "done.json";

/// What a machine is asked to do with the corpus of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundUnit {
    /// Run so many mutants.
    Slice { seed: u64, executions: u64 },
    /// Check a case; `crash`: power fails in it as well.
    Check { case: CaseId, crash: bool },
}

/// A case that a slice has kept. Its input lies beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SliceCase {
    pub case: Case,
    pub trail: Trail,
}

/// What came of a unit. Inputs, images and bundles lie beside it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SliceDone {
    pub executions: u64,
    /// Those of the campaign before it.
    pub before: u64,
    pub hangs: u64,
    pub crashes: u64,
    pub stable: (u64, u64),
    pub suggested: u64,
    pub helper_trouble: Option<String>,
    pub unchecked: u64,
    pub unchecked_why: Option<String>,
    pub cases: Vec<SliceCase>,
    pub nodes: Vec<Node>,
    pub found: Vec<Found>,
}

impl SliceDone {
    pub fn read(folder: &Path) -> io::Result<SliceDone> {
        serde_json::from_slice(&fs::read(folder.join(DONE))?).map_err(io::Error::other)
    }

    pub fn input(folder: &Path, number: usize) -> io::Result<Vec<u8>> {
        fs::read(folder.join("inputs").join(number.to_string()))
    }

    /// What is stored of the image of a node.
    pub fn image(folder: &Path, number: usize) -> io::Result<Vec<u8>> {
        fs::read(folder.join("images").join(number.to_string()))
    }
}

impl FuzzCampaign<'_> {
    /// Performs a unit on the pieces of a campaign that lie in the folder. What comes of it goes to `done`.
    pub fn perform(&self, unit: &RoundUnit, done: &Path) -> Result<(), CampaignError> {
        let covered = snapshot::assemble(&self.folder).map_err(failed("put together", &self.folder))?;
        let mut state = self.open()?;
        let before = (state.corpus.cases().len(), state.tree.nodes().len(), state.findings.all().len());
        let executions = state.executions;
        let state = match unit {
            RoundUnit::Slice { seed, executions } => {
                state.begin_slice(covered, *seed, *executions);
                self.work(state, Executor::new(self.subject.clone())?, 1)?
            }
            RoundUnit::Check { case, crash } => self.check_alone(state, *case, *crash)?,
        };
        let write = failed("write what was found in", done);
        self.left(&state, before, executions, done).map_err(write)?;
        Ok(())
    }

    fn check_alone(&self, mut state: State, case: CaseId, crash: bool) -> Result<State, CampaignError> {
        let Unit::Check { case, input, start, lineage, crash } = state.check_of(case, crash)? else {
            return Ok(state);
        };
        let shared = Shared { campaign: self, state: Mutex::new(state), failed: AtomicBool::new(false) };
        shared.check(case, &input, &start, &lineage, crash)?;
        Ok(shared.state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn left(&self, state: &State, before: (usize, usize, usize), executions: u64, done: &Path) -> io::Result<()> {
        let (cases, nodes, found) = before;
        for folder in ["inputs", "images", "findings"] {
            fs::create_dir_all(done.join(folder))?;
        }
        for (number, case) in state.corpus.cases()[cases..].iter().enumerate() {
            fs::write(done.join("inputs").join(number.to_string()), state.corpus.input(case.id))?;
        }
        for (number, node) in state.tree.nodes()[nodes..].iter().enumerate() {
            fs::write(done.join("images").join(number.to_string()), state.tree.packed(node)?)?;
        }
        let found = state.findings.all()[found..].to_vec();
        for found in &found {
            let id = &found.finding.id.0;
            copy(&self.folder.join("findings").join(id), &done.join("findings").join(id))?;
        }
        let kept = state.corpus.cases()[cases..].iter().zip(state.trails());
        let slice = SliceDone {
            executions: state.executions - executions,
            before: executions,
            hangs: state.hangs,
            crashes: state.crashes,
            stable: state.stable,
            suggested: state.suggested,
            helper_trouble: state.helper_trouble.clone(),
            unchecked: state.unchecked,
            unchecked_why: state.unchecked_why.clone(),
            cases: kept.map(|(case, trail)| SliceCase { case: case.clone(), trail: trail.clone() }).collect(),
            nodes: state.tree.nodes()[nodes..].to_vec(),
            found,
        };
        fs::write(done.join(DONE), serde_json::to_vec(&slice)?)
    }
}
