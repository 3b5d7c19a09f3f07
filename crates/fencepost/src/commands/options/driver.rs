//! Programs that do not read operations from standard input: which driver passes them on.

use std::env;
use std::ffi::OsString;

use clap::{Args, ValueEnum};
use drive::address;
use drive::driver;
use drive::protocol::Protocol;
use drive::template::with_place;
use recover::command::Command as RunCommand;

use super::operation::OperationOptions;

#[derive(Args, Clone, Debug)]
pub struct DriverOptions {
    /// Run this command once per operation, with the operation in place of {op}: `./tool pool {op}`. Its output and exit status
    /// are the answer.
    #[arg(long, value_name = "CMD", conflicts_with = "op_socket")]
    pub op_command: Option<String>,
    /// The program is a server: send operations to this address and wait for each answer. 127.0.0.1:{port} and {socket} let
    /// Fencepost choose, and are replaced in the program's arguments too; or give 127.0.0.1:PORT or a path.
    #[arg(long, value_name = "ADDR")]
    pub op_socket: Option<String>,
    /// How the server marks the end of an answer.
    #[arg(long, value_enum, value_name = "PROTOCOL", default_value_t = OpProtocol::Line)]
    pub op_protocol: OpProtocol,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OpProtocol {
    /// One line.
    Line,
    /// RESP; operations are inline commands.
    Redis,
    /// The text protocol; data is on the line of its command.
    Memcached,
}

impl From<OpProtocol> for Protocol {
    fn from(protocol: OpProtocol) -> Protocol {
        match protocol {
            OpProtocol::Line => Protocol::Line,
            OpProtocol::Redis => Protocol::Redis,
            OpProtocol::Memcached => Protocol::Memcached,
        }
    }
}

impl DriverOptions {
    /// As the command line has it.
    pub fn protocol_name(&self) -> &'static str {
        match self.op_protocol {
            OpProtocol::Line => "line",
            OpProtocol::Redis => "redis",
            OpProtocol::Memcached => "memcached",
        }
    }

    pub fn any(&self) -> bool {
        self.op_command.is_some() || self.op_socket.is_some()
    }

    /// Is what was asked for possible?
    pub fn fits(&self, operations: &OperationOptions, command: &[OsString]) -> Result<(), String> {
        let option = match (&self.op_command, &self.op_socket) {
            (Some(_), _) => "--op-command",
            (None, Some(_)) => "--op-socket",
            (None, None) => return Ok(()),
        };
        if operations.ops.is_none() && operations.grammar.is_none() {
            return Err(format!("{option} needs operations; give them with --ops FILE or --grammar FILE"));
        }
        if self.op_command.is_some() && !command.is_empty() {
            return Err("--op-command is the whole command; leave out what follows --".into());
        }
        let words = self.words(command)?;
        match RunCommand::here(&words).filter(|command| command.executable().is_none_or(|file| !file.exists())) {
            Some(missing) => Err(format!("{option}: the program `{}` is not found", missing.program.display())),
            None => Ok(()),
        }
    }

    /// Those of the program under test.
    fn words(&self, command: &[OsString]) -> Result<Vec<OsString>, String> {
        match &self.op_command {
            Some(template) => with_place(template).map_err(|error| format!("--op-command: {error}")),
            None => Ok(command.to_vec()),
        }
    }

    /// The command that reads operations from standard input, in place of this one.
    pub fn driven(&self, command: &[OsString], separator: Option<&str>) -> Result<Vec<OsString>, String> {
        let words = self.words(command)?;
        if self.op_command.is_some() {
            return Ok(driver::each(&own()?, &words));
        }
        let Some(place) = &self.op_socket else { return Ok(words) };
        address::check(place).map_err(|error| format!("--op-socket: {error}"))?;
        Ok(driver::server(&own()?, place, self.protocol_name(), separator, &words))
    }
}

fn own() -> Result<OsString, String> {
    let path = env::current_exe();
    path.map(OsString::from).map_err(|error| format!("cannot find the program that drives operations: {error}"))
}

/// The command that prints what these words write to this file.
pub fn answering(file: &str, words: &[OsString]) -> Result<Vec<OsString>, String> {
    Ok(driver::answering(&own()?, file, words))
}
