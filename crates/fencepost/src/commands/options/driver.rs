//! Programs that do not read operations from standard input: which driver stands between.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use clap::{Args, ValueEnum};
use drive::address;
use drive::protocol::Protocol;
use drive::template::with_place;
use recover::command::Command as RunCommand;
use trace::Meta;

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
    /// The text protocol; data stands on the line of its command.
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
        let mut words: Vec<OsString> = Vec::new();
        if self.op_command.is_some() {
            words.extend([own()?, DRIVE.into(), "command".into(), "--".into()]);
        } else if let Some(place) = &self.op_socket {
            address::check(place).map_err(|error| format!("--op-socket: {error}"))?;
            words.extend([own()?, DRIVE.into(), "socket".into(), "--at".into(), place.into()]);
            let protocol = self.op_protocol.to_possible_value().expect("none is left out");
            words.extend(["--protocol".into(), protocol.get_name().into()]);
            words.extend(separator.into_iter().flat_map(|text| ["--separator".into(), text.into()]));
            words.push("--".into());
        }
        words.extend(self.words(command)?);
        Ok(words)
    }
}

fn own() -> Result<OsString, String> {
    let path = env::current_exe();
    path.map(OsString::from).map_err(|error| format!("cannot find the program that drives operations: {error}"))
}

/// The command that prints what these words write to this file.
pub fn answering(file: &str, words: &[OsString]) -> Result<Vec<OsString>, String> {
    let own = [own()?, DRIVE.into(), "answers".into(), "--file".into(), file.into(), "--".into()];
    Ok(own.into_iter().chain(words.iter().cloned()).collect())
}

const DRIVE: &str = "drive";
/// Options of a driver come behind its path, its name and its kind.
const OPTIONS: usize = 3;

/// A recorded command that is a driver.
#[derive(Clone, Copy, Debug)]
pub struct Driver<'a>(&'a [String]);

impl<'a> Driver<'a> {
    pub fn of(meta: &'a Meta) -> Option<Driver<'a>> {
        let words = &meta.command;
        let program = words.first().and_then(|program| Path::new(program).file_name());
        let is_own = env::current_exe().is_ok_and(|own| own.file_name() == program);
        (is_own && words.len() > OPTIONS && words[1] == DRIVE).then_some(Driver(words))
    }

    /// Runs at the same time would meet at the server's place, or in the file of answers.
    pub fn one_at_a_time(self) -> bool {
        let mut own = self.0.iter().take_while(|word| *word != "--");
        let place = own.find(|word| *word == "--at" || *word == "--file").and_then(|_| own.next());
        place.is_some_and(|place| !address::is_free(place) && !place.contains(drive::answers::PLACE))
    }

    /// With a command to run before the first operation.
    pub fn after(self, first: &str) -> Vec<OsString> {
        let (own, rest) = self.0.split_at(OPTIONS);
        let words = own.iter().map(String::as_str).chain(["--first", first]).chain(rest.iter().map(String::as_str));
        words.map(OsString::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(words: &str) -> Meta {
        let own = env::current_exe().unwrap().display().to_string();
        Meta { command: std::iter::once(own).chain(words.split(' ').map(String::from)).collect(), ..Meta::default() }
    }

    #[test]
    fn recorded_drivers() {
        let meta = recorded("drive socket --at 127.0.0.1:{port} --protocol line -- kv --at /s");
        assert!(!Driver::of(&meta).unwrap().one_at_a_time());
        let after = Driver::of(&meta).unwrap().after("fix it");
        assert_eq!(after[1..7], ["drive", "socket", "--first", "fix it", "--at", "127.0.0.1:{port}"]);
        assert!(Driver::of(&recorded("drive socket --at /s --protocol line -- kv")).unwrap().one_at_a_time());
        assert!(!Driver::of(&recorded("drive command -- kv --at /s")).unwrap().one_at_a_time());
        assert!(Driver::of(&recorded("check -- drive it")).is_none());
    }
}
