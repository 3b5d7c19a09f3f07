//! The summary of `fencepost record`.

use std::path::Path;

use record::ending;
use record::recording::Recording;
use report::number::separated;
use trace::event::ExitStatus;
use trace::{Ending, Outcome, Severity, TraceReader};

use super::super::output::code_path::say_msync;
use crate::render;

/// A program that failed is often why there is less in its recording than its user expects.
pub fn say_failure(reader: &TraceReader) {
    if let Ending::Complete(Outcome::Ended(status)) = reader.ending()
        && status != ExitStatus::Code(0)
    {
        say_end(reader.tables().meta.command.first().map_or("the program", String::as_str), status);
    }
}

fn say_end(program: &str, status: ExitStatus) {
    match status {
        ExitStatus::Code(code) => render::note(format_args!("`{program}` exited with {code}")),
        ExitStatus::Signal(signal) => {
            let name = ending::signal_name(signal);
            render::warning(format_args!("`{program}` was killed by signal {signal} ({name})"));
        }
    }
}

/// A recording and what the user asked for.
#[derive(Debug)]
pub struct Summary<'a> {
    pub program: &'a str,
    pub globs: &'a [String],
    pub recording: &'a Recording,
    pub trace: &'a Path,
}

impl Summary<'_> {
    pub fn print(&self) {
        let recording = self.recording;
        for note in &recording.notes {
            match note.severity {
                Severity::Note => render::note(&note.text),
                Severity::Warning => render::warning(&note.text),
                Severity::Fatal => render::error(&note.text),
            }
        }
        let activity = &recording.activity;
        let program = self.program;
        say_end(program, recording.target);
        for pool in &recording.pools {
            render::note(format_args!("pool {} ({})", pool.path, render::bytes(pool.len)));
        }
        if recording.interrupted {
            render::warning("interrupted: the trace holds what happened until then");
        }
        render::note(format_args!(
            "{} events ({} stores, {} non-temporal, {} atomic, {} flushes, {} fences) in {} ({})",
            separated(recording.summary.events.0),
            separated(activity.stores),
            separated(activity.nt_stores),
            separated(activity.rmws),
            separated(activity.flushes),
            separated(activity.fences),
            self.trace.display(),
            render::bytes(recording.summary.bytes),
        ));
        if !activity.any() {
            self.explain_no_activity();
        } else if activity.pmdk_without_flushes() {
            say_msync();
        }
    }

    fn explain_no_activity(&self) {
        if self.recording.pools.is_empty() {
            render::warning("no persistent-memory activity: the program mapped no pool");
            if self.globs.is_empty() {
                render::help(
                    "without --pm a pool is a file that is mapped MAP_SHARED and writable; does the program get that far?",
                );
            } else {
                render::help(format_args!(
                    "no file that it mapped matches --pm {}; the glob must match the absolute path. \
                     Without --pm every file that is mapped shared and writable counts",
                    self.globs.join(" --pm ")
                ));
            }
        } else {
            render::warning("no persistent-memory activity: pools were mapped, but nothing was written to them");
            render::help("give the program work to do that changes its pool, or use --loads to record what it reads");
        }
    }
}
