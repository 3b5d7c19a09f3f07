//! `fencepost drive`: the driver that `check` records for programs that do not read operations from standard input. Not for users.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use drive::error::DriveError;
use drive::protocol::Protocol;
use drive::socket::Manner;
use drive::template::words;
use fs::usable::Growth;

use super::options::driver::OpProtocol;
use crate::exit::Exit;
use crate::render;

/// Give operations from standard input to a program.
#[derive(Debug, Subcommand)]
pub enum Drive {
    Command(OneEach),
    Socket(Server),
    Answers(File),
    Fuse(Daemon),
    Folder(Folder),
    Attend(Attend),
    Release(Release),
    Guest(super::fs::guest::Recovery),
}

/// Start a process for every operation.
#[derive(Args, Debug)]
pub struct OneEach {
    /// A command to run before the first.
    #[arg(long)]
    first: Option<String>,
    /// The words of the command, with {op}.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Start a server and send it every operation.
#[derive(Args, Debug)]
pub struct Server {
    /// A command to run before the server.
    #[arg(long)]
    first: Option<String>,
    #[arg(long)]
    at: String,
    #[arg(long, value_enum)]
    protocol: OpProtocol,
    /// Between operations that are sent at the same time.
    #[arg(long)]
    separator: Option<String>,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Run a command that writes answers to a file, and print them.
#[derive(Args, Debug)]
pub struct File {
    #[arg(long)]
    file: String,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Start the daemon of a file system and run operations on its mount.
#[derive(Args, Debug)]
pub struct Daemon {
    #[arg(long)]
    mount: PathBuf,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Run operations on a folder.
#[derive(Args, Debug)]
pub struct Folder {
    #[arg(long)]
    root: PathBuf,
}

/// Look at the mounts of a daemon that is forked for every crash image.
#[derive(Args, Debug)]
pub struct Attend {
    #[arg(long)]
    mount: PathBuf,
    /// A process in the mount namespace of the daemon.
    #[arg(long)]
    beside: u32,
    /// Files that grow need not be zero behind their old ends.
    #[arg(long)]
    no_growth: bool,
}

/// Wait for the end of the input, then unmount.
#[derive(Args, Debug)]
pub struct Release {
    #[arg(long)]
    mount: PathBuf,
}

impl Drive {
    pub fn run(&self) -> Exit {
        let ended = match self {
            Drive::Guest(recovery) => return super::fs::guest::ended(recovery.run()),
            Drive::Command(OneEach { first, command }) => {
                before(first.as_deref()).and_then(|first| Ok(drive::command::run(command, &first)?))
            }
            Drive::Socket(Server { first, at, protocol, separator, command }) => {
                let manner = Manner { protocol: Protocol::from(*protocol), separator: separator.as_deref() };
                before(first.as_deref()).and_then(|first| Ok(drive::socket::run(at, manner, command, &first)?))
            }
            Drive::Answers(File { file, command }) => drive::answers::run(file, command).map_err(Failed::from),
            Drive::Fuse(Daemon { mount, command }) => drive::fuse::run(mount, command).map_err(Failed::from),
            Drive::Folder(Folder { root }) => drive::fuse::run_in_folder(root).map_err(Failed::from),
            Drive::Attend(Attend { mount, beside, no_growth }) => {
                let growth = if *no_growth { Growth::Anything } else { Growth::Zero };
                drive::attend::run(mount, *beside, growth).map_err(Failed::from)
            }
            Drive::Release(Release { mount }) => {
                drive::release::run(mount);
                Ok(())
            }
        };
        match ended {
            Ok(()) => Exit::Clean,
            Err(Failed { text, code, signal }) => {
                render::error(text);
                if let Some(signal) = signal {
                    end_by(signal);
                }
                Exit::Target(code)
            }
        }
    }
}

struct Failed {
    text: String,
    code: u8,
    /// What it drives was ended by it.
    signal: Option<i32>,
}

/// Whoever looks at this process sees what became of the one that it drives.
fn end_by(signal: i32) {
    // SAFETY: plain system calls; the default action needs no handler.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::kill(libc::getpid(), signal);
    }
}

impl From<DriveError> for Failed {
    fn from(error: DriveError) -> Failed {
        Failed { text: error.to_string(), code: error.code(), signal: error.signal() }
    }
}

fn before(first: Option<&str>) -> Result<Vec<OsString>, Failed> {
    let words = first.map(words).transpose();
    Ok(words.map_err(|error| Failed { text: error.to_string(), code: 2, signal: None })?.unwrap_or_default())
}
