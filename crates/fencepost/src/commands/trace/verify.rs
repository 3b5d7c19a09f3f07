//! `fencepost trace verify`: checks that the events explain the final content of the pools.

use std::io;
use std::path::PathBuf;

use clap::Args;
use report::number::separated;
use serde_json::json;
use trace::{FoundName, PoolVerdict, VerifyReport};

use crate::cli::MessageFormat;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost trace verify fencepost.fptrace

Exit code 1: a pool's final content is not what the events make of its initial content.";

const JSON_VERSION: u32 = 1;

/// Replay the events onto the initial pools and compare with the final ones.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Verify {
    /// The trace.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Output format.
    #[arg(long, value_enum, default_value_t = MessageFormat::Human, value_name = "FORMAT")]
    message_format: MessageFormat,
}

impl Verify {
    pub fn run(&self) -> Exit {
        let report = match trace::verify(&self.file) {
            Ok(report) => report,
            Err(error) => {
                render::error(error);
                return Exit::Usage;
            }
        };
        let printed = match self.message_format {
            MessageFormat::Json => render::result(json(&report)),
            MessageFormat::Human => self.human(&report),
        };
        match render::ended(printed) {
            Exit::Clean if !report.is_same() => Exit::Findings,
            exit => exit,
        }
    }

    fn human(&self, report: &VerifyReport) -> io::Result<()> {
        if !report.complete {
            let file = self.file.display();
            render::warning(format_args!("{file} is not whole: there is no final content to compare with"));
        }
        for pool in &report.pools {
            render::result(format_args!("{}: {}", pool.path, verdict(pool)))?;
        }
        for name in &report.names {
            render::result(format_args!(
                "{}: the events leave {}, the run left {}",
                name.path,
                found(&name.replayed),
                found(&name.recorded)
            ))?;
        }
        render::result(format_args!(
            "{} events replayed, {} differing bytes in {} pools",
            separated(report.events),
            separated(report.differing_bytes()),
            report.pools.len()
        ))
    }
}

fn found(name: &FoundName) -> String {
    match name {
        FoundName::Nothing => "nothing".to_owned(),
        FoundName::Regular { mode, content } => {
            format!("a file with mode {mode:o}, content {:032x}", content.unwrap_or_default())
        }
        FoundName::Directory { mode } => format!("a directory with mode {mode:o}"),
        FoundName::Symlink { target } => format!("a symbolic link to {target}"),
    }
}

fn verdict(pool: &PoolVerdict) -> String {
    if !pool.compared {
        return "not compared, its final content is not in the trace".to_owned();
    }
    if pool.is_same() {
        return "0 differing bytes".to_owned();
    }
    if pool.replayed_len != pool.final_len {
        return format!("{} bytes long, but the events make it {}", pool.final_len, pool.replayed_len);
    }
    let about = if pool.exact { "" } else { "at most " };
    let place = pool.first_difference.map(|o| format!(", first at {:#x}", o.0)).unwrap_or_default();
    format!("{about}{} differing bytes in {} pages{place}", pool.differing_bytes, pool.differing_pages)
}

fn json(report: &VerifyReport) -> serde_json::Value {
    let pools: Vec<_> = report
        .pools
        .iter()
        .map(|pool| {
            json!({
                "pool": pool.pool.0,
                "path": pool.path,
                "same": pool.is_same(),
                "compared": pool.compared,
                "differing_bytes": pool.differing_bytes,
                "differing_pages": pool.differing_pages,
                "exact": pool.exact,
                "first_difference": pool.first_difference.map(|o| o.0),
                "replayed_len": pool.replayed_len,
                "final_len": pool.final_len,
            })
        })
        .collect();
    json!({
        "version": JSON_VERSION,
        "same": report.is_same(),
        "complete": report.complete,
        "events": report.events,
        "differing_bytes": report.differing_bytes(),
        "pools": pools,
        "names_compared": report.names_compared,
        "differing_names": report.names.iter().map(|name| &name.path).collect::<Vec<_>>(),
    })
}
