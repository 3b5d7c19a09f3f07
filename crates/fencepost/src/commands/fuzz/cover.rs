//! `fencepost fuzz cover`: PM instructions that no case of a campaign has executed.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use clap::Args;
use fuzz::corpus::Corpus;
use fuzz::coverage::Priority;
use fuzz::recorded::record_case;
use fuzz::tree::Tree;
use fuzz::unreached::scan::PmInstruction;
use fuzz::unreached::{Executed, Report, Site, unreached};
use trace::event::{CodeAddr, ModuleId};
use trace::symbol::Symbolizer;
use trace::{CodeModule, Tables};

use super::replay::subject_of;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost fuzz cover fuzz-out         what the campaign has not reached in your own code
  fencepost fuzz cover --all fuzz-out   and in libraries

PM instructions are flushes, fences and non-temporal stores in functions that flush, and calls that
lead there. Calls through pointers are not known.";

/// List PM instructions that no test case of a campaign has executed, by function and source line.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Cover {
    /// Show libraries in detail as well.
    #[arg(long)]
    all: bool,
    /// Folder of the campaign.
    #[arg(value_name = "FOLDER", default_value = "fuzz-out")]
    out: PathBuf,
}

impl Cover {
    pub fn run(&self) -> Exit {
        match self.cover() {
            Ok(()) => Exit::Clean,
            Err(text) => {
                render::error(text);
                Exit::Usage
            }
        }
    }

    fn cover(&self) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let about = Corpus::about(&self.out).map_err(|e| text(&e))?;
        let subject = subject_of(&about, &self.out)?;
        let corpus = Corpus::load(&self.out).map_err(|e| text(&e))?;
        let mut tree = Tree::open(&self.out.join("images"), about.pools.len()).map_err(|e| text(&e))?;
        let mut executed = Executed::default();
        let (mut cases, mut failed) = (0, 0);
        for case in corpus.cases().iter().filter(|case| case.priority == Priority::High) {
            let start = tree.image(case.start).map_err(|e| text(&e))?;
            cases += 1;
            match record_case(&subject, corpus.input(case.id), &start, Vec::new()) {
                Ok(recorded) => executed.add(&recorded.reader).map_err(|e| text(&e))?,
                Err(_) => failed += 1,
            }
        }
        if cases == failed {
            return Err(format!("no case of {} could be run again", self.out.display()));
        }
        if failed > 0 {
            render::warning(format_args!(
                "{failed} of {cases} cases could not be run again; what they executed is not counted"
            ));
        }
        let reports = unreached(&executed).map_err(|e| text(&e))?;
        self.print(&reports).map_err(|error| format!("cannot write to standard output: {error}"))
    }

    fn print(&self, reports: &[Report]) -> std::io::Result<()> {
        let modules = reports.iter().map(|report| CodeModule { path: report.path.clone(), ..CodeModule::default() });
        let tables = Tables { modules: modules.collect(), ..Tables::default() };
        let mut symbols = Symbolizer::new(&tables);
        for (number, report) in reports.iter().enumerate() {
            render::result(format_args!(
                "{}: {} of {} PM instructions executed",
                report.path, report.executed, report.all
            ))?;
            if !self.all && is_library(Path::new(&report.path)) {
                continue;
            }
            // By function, in the order of the file.
            let mut functions: BTreeMap<u64, (String, Vec<String>)> = BTreeMap::new();
            let mut first_of: BTreeMap<String, u64> = BTreeMap::new();
            for site in &report.unreached {
                let (function, line) = named(&mut symbols, number, site);
                let first = *first_of.entry(function.clone()).or_insert(site.address);
                let lines = &mut functions.entry(first).or_insert_with(|| (function, Vec::new())).1;
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
            for (function, lines) in functions.values() {
                render::result(format_args!("  {function}"))?;
                for line in lines {
                    render::result(format_args!("    {line}"))?;
                }
            }
        }
        Ok(())
    }
}

/// The function, and the line with what is there.
fn named(symbols: &mut Symbolizer<'_>, module: usize, site: &Site) -> (String, String) {
    let what = match site.kind {
        PmInstruction::Flush => "flush",
        PmInstruction::Fence => "fence",
        PmInstruction::NtStore => "non-temporal store",
        PmInstruction::Call => "call",
    };
    let frames = symbols.frames(CodeAddr { module: ModuleId(module as u32), addr: site.address });
    // Inlined helpers are told by who uses them.
    let frame = frames.last();
    let function = frame.and_then(|frame| frame.function.clone()).unwrap_or_else(|| "?".to_owned());
    let line = match frame.and_then(|frame| frame.source.as_ref()) {
        Some(source) => format!("{}:{}: {what}", source.file, source.line),
        None => format!("{:#x}: {what}", site.address),
    };
    (function, line)
}

/// Not the user's own.
fn is_library(path: &Path) -> bool {
    let own = env::current_exe().is_ok_and(|own| own == path);
    own || ["/usr/lib", "/lib", "/lib64", "/usr/lib64"].iter().any(|folder| path.starts_with(folder))
}
