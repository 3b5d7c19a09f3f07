//! Commands that stand between Fencepost and a program that does not read operations from its standard input: how they are written, and
//! how a recorded one is recognised.
//!
//! A driver is the `drive` subcommand of an executable that has one: `fencepost drive command -- ./tool pool {op}`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::address;

const DRIVE: &str = "drive";
/// Fencepost's own executable; harnesses can use its drivers.
const FENCEPOST: &str = "fencepost";
/// The driver that starts a process per operation.
const COMMAND: &str = "command";
const FIRST: &str = "--first";
/// Options of a driver come behind its path, its name and its kind.
const OPTIONS: usize = 3;

/// One process of `words` for each operation, which takes the place of `{op}`. `own` has the subcommand.
pub fn each(own: &OsStr, words: &[OsString]) -> Vec<OsString> {
    let driver = [own, DRIVE.as_ref(), COMMAND.as_ref(), "--".as_ref()];
    driver.into_iter().map(OsStr::to_owned).chain(words.iter().cloned()).collect()
}

/// The server of `words` is sent each operation at `place`; `separator`: text in a line between operations that are sent together.
pub fn server(own: &OsStr, place: &str, protocol: &str, separator: Option<&str>, words: &[OsString]) -> Vec<OsString> {
    let driver = [own, DRIVE.as_ref(), "socket".as_ref(), "--at".as_ref(), place.as_ref()];
    let options =
        ["--protocol", protocol].into_iter().chain(separator.into_iter().flat_map(|text| ["--separator", text]));
    let driver = driver.into_iter().chain(options.chain(["--"]).map(OsStr::new)).map(OsStr::to_owned);
    driver.chain(words.iter().cloned()).collect()
}

/// Prints what `words` write to this file.
pub fn answering(own: &OsStr, file: &str, words: &[OsString]) -> Vec<OsString> {
    let driver = [own, DRIVE.as_ref(), "answers".as_ref(), "--file".as_ref(), file.as_ref(), "--".as_ref()];
    driver.into_iter().map(OsStr::to_owned).chain(words.iter().cloned()).collect()
}

/// A recorded command that is a driver.
#[derive(Clone, Copy, Debug)]
pub struct Driver<'a>(&'a [String]);

/// A process per operation, as a driver was told to start them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commands<'a> {
    /// To run before the first operation, as the user wrote it.
    pub first: Option<&'a str>,
    /// With a place for the operation.
    pub template: &'a [String],
}

impl<'a> Driver<'a> {
    pub fn of(command: &'a [String]) -> Option<Driver<'a>> {
        let program = command.first().and_then(|program| Path::new(program).file_name());
        let is_own = env::current_exe().is_ok_and(|own| own.file_name() == program);
        let drives = is_own || program == Some(FENCEPOST.as_ref());
        (drives && command.len() > OPTIONS && command[1] == DRIVE).then_some(Driver(command))
    }

    /// Runs at the same time would meet at the server's place, or in the file of answers.
    pub fn one_at_a_time(self) -> bool {
        let mut own = self.0.iter().take_while(|word| *word != "--");
        let place = own.find(|word| *word == "--at" || *word == "--file").and_then(|_| own.next());
        place.is_some_and(|place| !address::is_free(place) && !place.contains(crate::answers::PLACE))
    }

    /// The command that runs once per operation, if this driver starts one.
    pub fn commands(self) -> Option<Commands<'a>> {
        let (own, template) = self.0.split_at(self.0.iter().position(|word| word == "--")?);
        let first = own.iter().position(|word| word == FIRST).and_then(|at| own.get(at + 1));
        (own[2] == COMMAND).then(|| Commands { first: first.map(String::as_str), template: &template[1..] })
    }

    /// With a command to run before the first operation.
    pub fn after(self, first: &str) -> Vec<OsString> {
        let (own, rest) = self.0.split_at(OPTIONS);
        let words = own.iter().map(String::as_str).chain([FIRST, first]).chain(rest.iter().map(String::as_str));
        words.map(OsString::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(words: &str) -> Vec<String> {
        std::iter::once("/opt/bin/fencepost").chain(words.split(' ')).map(String::from).collect()
    }

    #[test]
    fn recorded_drivers() {
        let command = recorded("drive socket --at 127.0.0.1:{port} --protocol line -- kv --at /s");
        assert!(!Driver::of(&command).unwrap().one_at_a_time());
        let after = Driver::of(&command).unwrap().after("fix it");
        assert_eq!(after[1..7], ["drive", "socket", "--first", "fix it", "--at", "127.0.0.1:{port}"]);
        assert!(Driver::of(&recorded("drive socket --at /s --protocol line -- kv")).unwrap().one_at_a_time());
        assert!(!Driver::of(&recorded("drive command -- kv --at /s")).unwrap().one_at_a_time());
        assert!(Driver::of(&recorded("check -- drive it")).is_none());
        assert!(Driver::of(&command).unwrap().commands().is_none());
    }

    #[test]
    fn commands_of_a_recorded_driver() {
        let template = ["kv".to_owned(), "--first".to_owned(), "{op}".to_owned()];
        let command = recorded("drive command -- kv --first {op}");
        let commands = Driver::of(&command).unwrap().commands();
        assert_eq!(commands, Some(Commands { first: None, template: &template }));
        let after: Vec<String> =
            Driver::of(&command).unwrap().after("fix it").into_iter().map(|word| word.into_string().unwrap()).collect();
        let commands = Driver::of(&after).unwrap().commands();
        assert_eq!(commands, Some(Commands { first: Some("fix it"), template: &template }));
    }

    #[test]
    fn what_is_written_is_recognised() {
        let own = OsStr::new("/opt/bin/fencepost");
        let words = ["kv".into(), "{op}".into()];
        for (driver, alone) in [
            (each(own, &words), false),
            (server(own, "/s", "redis", Some("==="), &words), true),
            (answering(own, "/answers", &words), true),
        ] {
            let driver: Vec<String> = driver.into_iter().map(|word| word.into_string().unwrap()).collect();
            assert_eq!(Driver::of(&driver).unwrap().one_at_a_time(), alone, "{driver:?}");
            assert_eq!(driver[driver.len() - 2..], ["kv", "{op}"]);
        }
    }
}
