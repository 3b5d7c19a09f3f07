//! Removes operations from random workloads that a file system does wrong, or differently each time, without any crash. The rest of the
//! workload stays.
//!
//! ```text
//!   run, unmount, mount again                the same tree, and it is usable
//!   run on a pool whose blocks were in use   the same answers and trees; bytes that were never written differ
//! ```
//! What it can miss: operations that go wrong only after other workloads. Such workloads are left out entirely when they are checked.

use std::io;
use std::path::{Path, PathBuf};

use fs::content::Seed;
use fs::execute::Answer;
use fs::op::{File, Offset, Op, Way};
use fs::usable::Growth;
use fs::workload::{FsWorkload, Step};
use recover::command::Command;
use recover::limits::Limits;
use recover::native::{Native, PoolFile, Session};

use crate::reference::{Fault, Reference, ReferenceError, Walks, remounted, run};

/// A workload with more faults than this is not worth the time.
const MOST_FAULTS: usize = 8;
/// Files that were there before, and their bytes: some blocks each, of a size that is no power of two.
const EARLIER_FILES: u8 = 6;
const EARLIER_BYTES: u64 = 20_000;

/// A file system, run without a crash on copies of its pool.
#[derive(Debug)]
pub struct Screen {
    native: Native,
    driver: Command,
    pool: PathBuf,
    fresh: PathBuf,
    used: PathBuf,
    private: PathBuf,
    limits: Limits,
    growth: Growth,
}

/// An operation that was taken out of a workload.
#[derive(Debug)]
pub struct LeftOut {
    pub op: Op,
    pub why: ReferenceError,
}

/// What is left of a workload: nothing, if there were too many faults.
#[derive(Debug)]
pub struct Screened {
    pub workload: Option<FsWorkload>,
    pub left_out: Vec<LeftOut>,
}

/// Where the pool of a screen is.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Where the file system expects it.
    pub pool: PathBuf,
    /// As it was made.
    pub fresh: PathBuf,
    /// A place for one whose blocks were in use.
    pub used: PathBuf,
    /// A place for the one that a run changes.
    pub private: PathBuf,
}

impl Screen {
    /// Uses the file system a little; one that fails then is not worth any workload.
    pub fn open(driver: Command, pools: Pools, limits: Limits, growth: Growth) -> Result<Screen, ReferenceError> {
        let Pools { pool, fresh, used, private } = pools;
        let screen = Screen { native: Native::new(), driver, pool, fresh, used, private, limits, growth };
        let mut session = screen.session(&screen.fresh)?;
        run(&mut session, &earlier(), &screen.driver, &screen.limits, Walks::Crashed, None)
            .map_err(|fault| fault.why)?;
        let copied = match session.content(0) {
            Some(content) => std::fs::copy(content, &screen.used),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        copied.map_err(ReferenceError::Copy)?;
        Ok(screen)
    }

    /// The workloads without what fails. One run for all of them, if nothing does.
    pub fn all(&self, workloads: Vec<FsWorkload>) -> Result<Vec<Screened>, ReferenceError> {
        if self.fault(&FsWorkload::chain(&workloads))?.is_none() {
            let clean = |workload| Screened { workload: Some(workload), left_out: Vec::new() };
            return Ok(workloads.into_iter().map(clean).collect());
        }
        workloads.into_iter().map(|workload| self.one(workload)).collect()
    }

    fn one(&self, mut workload: FsWorkload) -> Result<Screened, ReferenceError> {
        let mut left_out = Vec::new();
        while left_out.len() < MOST_FAULTS && workload.steps.iter().any(|step| step.crash) {
            let Some(fault) = self.fault(&workload.steps)? else {
                return Ok(Screened { workload: Some(workload), left_out });
            };
            let at = self.guilty(&workload.steps, &fault)?;
            left_out.push(LeftOut { op: workload.steps.remove(at).op, why: fault.why });
        }
        Ok(Screened { workload: None, left_out })
    }

    /// The step that a fault is of. Of one that shows at the end only: the last of the fewest steps that show one.
    fn guilty(&self, steps: &[Step], fault: &Fault) -> Result<usize, ReferenceError> {
        if let Some(step) = fault.step {
            return Ok(step);
        }
        let (mut good, mut bad) = (0, steps.len());
        while bad - good > 1 {
            let middle = good.midpoint(bad);
            match self.fault(&steps[..middle])? {
                None => good = middle,
                Some(Fault { step: Some(step), .. }) => return Ok(step),
                Some(Fault { step: None, .. }) => bad = middle,
            }
        }
        Ok(bad - 1)
    }

    fn fault(&self, steps: &[Step]) -> Result<Option<Fault>, ReferenceError> {
        match self.sound(steps) {
            Ok(()) => Ok(None),
            // That is ours, not the file system's.
            Err(Fault { why: why @ (ReferenceError::Run(_) | ReferenceError::Copy(_)), .. }) => Err(why),
            Err(fault) => Ok(Some(fault)),
        }
    }

    fn sound(&self, steps: &[Step]) -> Result<(), Fault> {
        let on = |content: &Path| self.session(content).map_err(|why| Fault { step: None, why });
        let mut session = on(&self.fresh)?;
        let reference = self.run(&mut session, steps)?;
        remounted(&mut session, reference.last(), &self.driver, &self.limits, self.growth)?;
        drop(session);
        let other = self.run(&mut on(&self.used)?, steps)?;
        reference.differs(&other, steps).map_or(Ok(()), Err)
    }

    fn run(&self, session: &mut Session, steps: &[Step]) -> Result<Reference, Fault> {
        let reference = run(session, steps, &self.driver, &self.limits, Walks::All, None)?;
        let kept = steps
            .iter()
            .zip(&reference.answers)
            .position(|(step, answer)| step.op == Op::Reset && *answer != Answer::Done);
        let why = |at: usize| ReferenceError::Broken {
            step: steps[at].op.to_string(),
            what: "not everything can be removed".into(),
        };
        kept.map_or(Ok(reference), |at| Err(Fault { step: Some(at), why: why(at) }))
    }

    /// On a copy of this content, since runs change theirs. There is one session at a time.
    fn session(&self, content: &Path) -> Result<Session, ReferenceError> {
        std::fs::copy(content, &self.private).map_err(ReferenceError::Copy)?;
        Ok(self.native.session(&[PoolFile { path: self.pool.clone(), content: &self.private }])?)
    }
}

/// Files that were there before, with bytes that are not zero.
fn earlier() -> Vec<Step> {
    let files = (1..=EARLIER_FILES).flat_map(|number| {
        let file = File { path: format!("earlier-{number}"), fd: None };
        let (at, seed) = (Offset::At(0), Seed(number));
        let write = Op::Write { file: file.clone(), at, len: EARLIER_BYTES, seed, way: Way::Buffered };
        [Op::Creat(file.path), write]
    });
    files.chain([Op::Reset]).map(|op| Step { op, crash: false }).collect()
}
