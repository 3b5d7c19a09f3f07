//! `fencepost trace stat`: counts what is in a recording.

use std::path::PathBuf;

use clap::Args;
use report::number::separated;
use serde_json::json;

use crate::cli::MessageFormat;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost trace stat fencepost.fptrace
  fencepost trace stat --message-format json fencepost.fptrace | jq .stores";

/// Version of the JSON object; raised when a key changes its meaning or goes away.
const JSON_VERSION: u32 = 1;

/// Summarise a recording: events by kind, threads, pools, instructions.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Stat {
    /// The trace.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Output format.
    #[arg(long, value_enum, default_value_t = MessageFormat::Human, value_name = "FORMAT")]
    message_format: MessageFormat,
}

impl Stat {
    pub fn run(&self) -> Exit {
        let stat = match trace::stat(&self.file) {
            Ok(stat) => stat,
            Err(error) => {
                render::error(error);
                return Exit::Usage;
            }
        };
        let printed = match self.message_format {
            MessageFormat::Json => render::result(json(&stat)),
            MessageFormat::Human => human(&stat),
        };
        if !stat.complete {
            render::warning(format_args!("{} is not whole: the recording was cut short", self.file.display()));
        }
        render::ended(printed)
    }
}

fn json(stat: &trace::Stat) -> serde_json::Value {
    json!({
        "version": JSON_VERSION,
        "events": stat.events,
        "stores": stat.stores,
        "nt_stores": stat.nt_stores,
        "rmws": stat.rmws,
        "flushes": stat.flushes,
        "volatile_flushes": stat.volatile_flushes,
        "fences": stat.fences,
        "loads": stat.loads,
        "syncs": stat.syncs,
        "kernel_writes": stat.kernel_writes,
        "file_writes": stat.file_writes,
        "file_changes": stat.file_changes,
        "calls": stat.calls,
        "processes": stat.processes,
        "threads": stat.threads,
        "contexts": stat.contexts,
        "operations": stat.operations,
        "pools": stat.pools,
        "instructions_seen": stat.instructions_seen,
        "bytes": stat.bytes,
        "complete": stat.complete,
    })
}

fn human(stat: &trace::Stat) -> std::io::Result<()> {
    for (name, number) in [
        ("events", stat.events),
        ("stores", stat.stores),
        ("  non-temporal", stat.nt_stores),
        ("read-modify-writes", stat.rmws),
        ("flushes", stat.flushes),
        ("  of ordinary memory", stat.volatile_flushes),
        ("fences", stat.fences),
        ("loads", stat.loads),
        ("msync, fsync", stat.syncs),
        ("kernel writes", stat.kernel_writes),
        ("file writes", stat.file_writes),
        ("other file changes", stat.file_changes),
        ("watched calls", stat.calls),
        ("processes", stat.processes),
        ("threads", stat.threads),
        ("contexts", stat.contexts),
        ("operations", stat.operations),
        ("pools", stat.pools),
    ] {
        render::result(format_args!("{name:<22} {:>14}", separated(number)))?;
    }
    render::result(format_args!("{:<22} {:>14}", "size of the trace", render::bytes(stat.bytes)))?;
    render::result(format_args!("{:<22} {}", "instructions", stat.instructions_seen.join(" ")))
}
