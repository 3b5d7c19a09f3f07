//! `fencepost debug`: runs the recovery of a finding under gdb, with the crash image in place.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use evidence::bundle::{Bundle, FOLDER};
use recover::command::Command;
use recover::native::Native;
use report::words;

use super::fs::guest::debugged;
use super::fs::replay::Served;
use super::replay::Images;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost debug 1a2b3c4d
  fencepost debug 1a2b3c4d -- -batch -ex continue -ex backtrace    print the stack of the failure

gdb stops the recovery just before it opens a pool. Recovery sees a private copy of the crash image
in place of the pool; the pool is not touched. The guest of a kernel file system is stopped before
it mounts, and when it panics.";

/// Run the recovery of a finding under gdb, stopped before it opens the pool.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Debug {
    /// Id of the finding; its first digits are enough.
    #[arg(value_name = "ID")]
    id: String,
    /// Folder of findings.
    #[arg(long, value_name = "FOLDER", default_value = FOLDER)]
    bundles: PathBuf,
    /// Debugger to run.
    #[arg(long, value_name = "PROGRAM", default_value = "gdb")]
    gdb: PathBuf,
    /// Further arguments for gdb; commands among them run once the recovery has stopped.
    #[arg(last = true, value_name = "ARG")]
    arguments: Vec<OsString>,
}

impl Debug {
    pub fn run(&self) -> Exit {
        match self.debug() {
            Ok(exit) => exit,
            Err(text) => {
                render::error(text);
                Exit::Usage
            }
        }
    }

    fn debug(&self) -> Result<Exit, String> {
        let mut bundle = Bundle::read(&self.bundles, &self.id).map_err(|error| error.to_string())?;
        let served = Served::of(&mut bundle)?;
        if served.is_some() {
            bundle.recovery = Served::daemon(&bundle.recovery);
        }
        let images = Images::of(&bundle).map_err(|error| format!("cannot copy the crash image: {error}"))?;
        let gdb = self.gdb(&bundle);
        if (Command { program: self.gdb.clone(), ..gdb.clone() }).executable().is_none() {
            return Err(format!(
                "`{}` is not found; install it (apt-get install gdb) or name it with --gdb",
                self.gdb.display()
            ));
        }
        let mut session =
            Native::new().session_with(&images.pool_files(), &images.space).map_err(|error| error.to_string())?;
        render::note(format_args!("finding {}: {}", bundle.finding.id, words::title(&bundle.finding)));
        match session.attend(&gdb).map_err(|error| error.to_string())? {
            0 => Ok(Exit::Clean),
            code => Ok(Exit::Target(code as u8)),
        }
    }

    /// The recovery in a guest, with gdb on the guest; or gdb with a catchpoint on every call that opens a pool, and the recovery started.
    fn gdb(&self, bundle: &Bundle) -> Command {
        if let Some(args) = debugged(&bundle.recovery.args, &self.gdb, &self.arguments) {
            return Command { args, ..bundle.recovery.clone() };
        }
        let names = bundle.pools.iter().filter_map(|(pool, _)| pool.file_name()).map(|name| name.to_string_lossy());
        // The path as the program gives it ends in the pool's name, whatever directory it is relative to.
        let condition = |register: &str| {
            let is_pool =
                |name: std::borrow::Cow<'_, str>| format!("$_regex((char*){register}, \".*{}$\")", escaped(&name));
            names.clone().map(is_pool).collect::<Vec<_>>().join(" || ")
        };
        let mut args: Vec<OsString> = vec!["-q".into(), "-ex".into(), "set breakpoint pending on".into()];
        for (call, register) in [("openat", "$rsi"), ("open", "$rdi")] {
            let commands = [format!("catch syscall {call}"), format!("condition $bpnum {}", condition(register))];
            for command in commands {
                args.extend(["-ex".into(), command.into()]);
            }
        }
        args.extend(["-ex".into(), "run".into()]);
        args.extend(self.arguments.iter().cloned());
        args.push("--args".into());
        args.push(bundle.recovery.program.clone().into());
        args.extend(bundle.recovery.args.iter().cloned());
        Command { program: self.gdb.clone(), args, ..bundle.recovery.clone() }
    }
}

/// A file name inside a regular expression inside a string of gdb's.
fn escaped(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    name.chars().map(|c| if plain(c) { c } else { '.' }).collect()
}
