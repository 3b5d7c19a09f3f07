//! `fencepost replay`: runs recovery again on the crash image of a finding.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use check::settings::oracle;
use clap::Args;
use evidence::bundle::{Bundle, FOLDER};
use evidence::bundled;
use operation::equivalence::{judge_whole, somewhere};
use recover::native::{Native, PoolFile};
use recover::space::{self, Space};
use report::words;
use supervise::temporary::Temporary;
use trace::event::PoolId;
use verdict::verdict::Verdict;

use super::fs::replay::Served;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost replay 1a2b3c4d                                  a finding of the last check
  fencepost replay --bundles /ci/artifacts/.fencepost 1a2b   a finding from CI

Recovery sees a private copy of the crash image in place of the pool; the pool is not touched.
Exit code 1: the failure is still there. 0: recovery passes.";

/// Reproduce a finding: run recovery on its crash image, without instrumentation.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Replay {
    /// Id of the finding; its first digits are enough.
    #[arg(value_name = "ID")]
    id: String,
    /// Folder of findings.
    #[arg(long, value_name = "FOLDER", default_value = FOLDER)]
    bundles: PathBuf,
}

impl Replay {
    pub fn run(&self) -> Exit {
        match self.replay() {
            Ok(exit) => exit,
            Err(text) => {
                render::error(text);
                Exit::Usage
            }
        }
    }

    fn replay(&self) -> Result<Exit, String> {
        let mut bundle = Bundle::read(&self.bundles, &self.id).map_err(|error| error.to_string())?;
        let served = Served::of(&mut bundle)?;
        let oracle = oracle(&bundle.expectation).map_err(|error| error.to_string())?;
        let images = Images::of(&bundle).map_err(|error| format!("cannot copy the crash image: {error}"))?;
        let mut session =
            Native::new().session_with(&images.pool_files(), &images.space).map_err(|error| error.to_string())?;
        render::note(format_args!("finding {}: {}", bundle.finding.id, words::title(&bundle.finding)));
        let run = session.run(&bundle.recovery, &bundle.limits).map_err(|error| error.to_string())?;
        let check = match bundle.checker.as_ref().filter(|_| oracle.wants_checker(&run)) {
            Some(checker) => Some(session.run(checker, &bundle.limits).map_err(|error| error.to_string())?),
            None => None,
        };
        let shown = |bytes: &[u8], to: &mut dyn Write| to.write_all(bytes).and_then(|()| to.flush());
        for report in [Some(&run), check.as_ref()].into_iter().flatten() {
            // Who has closed the streams does not want to see it.
            let _ = shown(&report.stdout, &mut io::stdout());
            let _ = shown(&report.stderr, &mut io::stderr());
        }
        let verdict = match oracle.judge_named(&run, check.as_ref(), &|_| None) {
            Verdict::Pass => match &served {
                Some(served) => served.case.judge(&run.stdout).map_err(|error| error.to_string())?,
                None => judge_whole(&bundle.expectation.answers, &run.stdout),
            },
            failed => failed,
        };
        let Verdict::Fail(symptom) = verdict else {
            render::note("recovery passes on this crash image now");
            return Ok(Exit::Clean);
        };
        let symptom = if bundle.expectation.answers.is_empty() { *symptom } else { somewhere(*symptom) };
        render::warning(format_args!("reproduced: {}", words::symptom(&symptom)));
        render::help(format_args!("`fencepost debug {}` runs it under gdb", bundle.finding.id));
        Ok(Exit::Findings)
    }
}

/// Copies of the crash images, for recovery to change.
#[derive(Debug)]
pub struct Images {
    _folder: Temporary,
    files: Vec<(PathBuf, PathBuf)>,
    /// The files beside the pools.
    pub space: Space,
}

impl Images {
    pub fn of(bundle: &Bundle) -> io::Result<Images> {
        let folder = Temporary::new("replay")?;
        let mut files = Vec::new();
        for (number, (pool, image)) in bundle.pools.iter().enumerate() {
            let copy = folder.path().join(number.to_string());
            fs::copy(image, &copy).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}; run the check again", image.display()))
            })?;
            files.push((pool.clone(), copy));
        }
        let names = bundled::names(&bundle.files);
        let of_pools = bundle.pools.iter().filter_map(|(pool, _)| pool.parent()).map(Path::to_owned);
        let roots = space::roots(of_pools.chain(bundle.folders.iter().cloned()), &names);
        let mut space = Space::create(&folder.path().join("files"), &roots, &names)?;
        let stand_in = |pool: PoolId| files.get(pool.0 as usize).map(|(_, copy)| copy.clone());
        bundled::put(&bundle.files, &bundle.folder, &mut space, &stand_in)?;
        Ok(Images { _folder: folder, files, space })
    }

    pub fn pool_files(&self) -> Vec<PoolFile<'_>> {
        self.files.iter().map(|(path, content)| PoolFile { path: path.clone(), content }).collect()
    }
}
