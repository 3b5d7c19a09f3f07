//! `fencepost fuzz replay`: runs a test case, or that of a finding, again, starting from the root of all images.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fuzz::case::CaseId;
use fuzz::corpus::{About, Corpus};
use fuzz::execute::{Delivery, Executor, Subject};
use fuzz::image::Image;
use fuzz::tree::Tree;
use recover::command::Command;
use recover::limits::Limits;
use verdict::end::End;

use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost fuzz replay 12                       case 12 of the campaign in fuzz-out
  fencepost fuzz replay --keep there 25173935    the case of a finding, with its pools";

/// Run a test case of a campaign again: rebuild its starting pool, then run its input.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Replay {
    /// Folder of the campaign.
    #[arg(short, long, value_name = "FOLDER", default_value = "fuzz-out")]
    out: PathBuf,
    /// Keep the starting pools and the resulting pools in FOLDER.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Number of a test case, or id of a finding.
    #[arg(value_name = "CASE")]
    case: String,
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
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let about = Corpus::about(&self.out).map_err(|e| text(&e))?;
        let subject = subject_of(&about, &self.out)?;
        let mut executor = Executor::new(subject).map_err(|e| text(&e))?;
        let finding = self.out.join("findings").join(&self.case).join("case");
        let (input, start) = match finding.is_dir() {
            true => self.of_finding(&finding, about.pools.len())?,
            false => self.of_case(&mut executor, about.pools.len())?,
        };
        let execution = executor.run(&input, &start).map_err(|e| text(&e))?;
        if let Some(folder) = &self.keep {
            start
                .write(folder, "start")
                .and_then(|()| {
                    fs::write(folder.join("input"), &input)?;
                    executor.left().map_err(io::Error::other)?.write(folder, "left")
                })
                .map_err(|error| format!("cannot write to {}: {error}", folder.display()))?;
        }
        let mut out = io::stdout().lock();
        let _ = out.write_all(&execution.report.stdout);
        let pm = execution.trail.pm().count();
        let _ = writeln!(
            io::stderr(),
            "{} on {}: {}; {pm} PM transitions, {} edges",
            self.case,
            if start.is_none() { "no pool".to_owned() } else { format!("image {}", start.id()) },
            ended(&execution.report.end),
            execution.trail.edges().count()
        );
        Ok(if execution.is_orderly() { Exit::Clean } else { Exit::Findings })
    }

    fn of_finding(&self, folder: &std::path::Path, pools: usize) -> Result<(Vec<u8>, Arc<Image>), String> {
        let input = fs::read(folder.join("input"))
            .map_err(|error| format!("cannot read {}: {error}", folder.join("input").display()))?;
        let start = Image::read(folder, "start", pools)
            .map_err(|error| format!("cannot read the starting pool in {}: {error}", folder.display()))?;
        Ok((input, Arc::new(start)))
    }

    /// Every case that its starting pool comes from is run again; the images must be those that are stored.
    fn of_case(&self, executor: &mut Executor, pools: usize) -> Result<(Vec<u8>, Arc<Image>), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let corpus = Corpus::load(&self.out).map_err(|e| text(&e))?;
        let mut tree = Tree::open(&self.out.join("images"), pools).map_err(|e| text(&e))?;
        let number = self.case.parse::<u32>().ok().map(CaseId);
        let id = number.filter(|id| corpus.get(*id).is_some()).ok_or_else(|| {
            format!(
                "there is no case or finding `{}` in {}; cases are 0 to {}",
                self.case,
                self.out.display(),
                corpus.cases().len().saturating_sub(1)
            )
        })?;
        let lineage = corpus.lineage(id, &tree);
        for pair in lineage.windows(2) {
            let (from, to) = (&corpus.cases()[pair[0].0 as usize], &corpus.cases()[pair[1].0 as usize]);
            // A crash image is not what the whole run leaves.
            if tree.node(to.start).is_none_or(|node| node.crash.is_some()) {
                continue;
            }
            let start = tree.image(from.start).map_err(|e| text(&e))?;
            executor.run(corpus.input(from.id), &start).map_err(|e| text(&e))?;
            if executor.left().map_err(|e| text(&e))?.id() != to.start {
                render::warning(format_args!(
                    "case {} does not leave what it left before: the program has changed, or is not deterministic",
                    from.id
                ));
            }
        }
        let case = &corpus.cases()[id.0 as usize];
        let start = tree.image(case.start).map_err(|e| text(&e))?;
        Ok((corpus.input(id).to_vec(), start))
    }
}

/// What the campaign in this folder fuzzes.
pub fn subject_of(about: &About, folder: &std::path::Path) -> Result<Subject, String> {
    let words: Vec<std::ffi::OsString> = about.command.iter().map(Into::into).collect();
    let command = Command::here(&words).ok_or("the campaign has no command")?;
    let delivery = match about.delivery.as_str() {
        "operations" => Delivery::Operations,
        "stdin" => Delivery::Stdin,
        "arguments" => Delivery::Arguments,
        _ => Delivery::File(std::env::current_dir().unwrap_or_default().join(folder).join("input")),
    };
    Ok(Subject { command, delivery, pools: about.pools.clone(), limits: Limits::default() })
}

fn ended(end: &End) -> String {
    match end {
        End::Exited(code) => format!("exit {code}"),
        End::Signalled { signal, .. } => format!("signal {signal}"),
        End::Hung => "hangs".to_owned(),
        End::OverLimit(limit) => format!("over its limit ({limit:?})"),
    }
}
