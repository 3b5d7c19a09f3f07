//! Puts the layers together: each option of a command can also be given as `FENCEPOST_OPTION` and in `fencepost.toml`.
//!
//! The file's values become the defaults of the options, so that clap lets the command line and the environment go before them
//! and judges them as it judges all others. Options that can be repeated add up: the file's come first.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};

use super::file::{ConfigError, ConfigFile, Setting};
use crate::cli::Cli;
use crate::help;
use crate::render;

/// Most of these are about Fencepost itself: a broken configuration must not keep anybody from them.
const UNCONFIGURED: [&str; 10] =
    ["explain", "trace", "ops", "fs", "doctor", "demo", "completions", "man", "help", "drive"];

/// The command line, completed by the environment and the configuration. Ends the process where clap does: help, wrong usage.
pub fn parse() -> Result<Cli, ConfigError> {
    let arguments: Vec<OsString> = env::args_os().collect();
    let root = Cli::command().mut_subcommands(|command| {
        if is_configured(command.get_name()) { command.mut_args(mirrored) } else { command }
    });
    let shown = help::arrange(root.clone());
    let matches = shown.try_get_matches_from(&arguments).unwrap_or_else(|error| refused(&root, &arguments, &error));
    let matches = match matches.subcommand() {
        Some((name, given)) if is_configured(name) => configured(&root, &arguments, &matches, name, given)?,
        _ => None,
    }
    .unwrap_or(matches);
    Ok(Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
}

/// Ends as clap does, with a hint where the `--` before the program is missing.
fn refused(root: &Command, arguments: &[OsString], error: &clap::Error) -> ! {
    if let Some(hint) = program_without_dashes(root, arguments, error) {
        let _ = error.print();
        render::help(hint);
        process::exit(error.exit_code());
    }
    error.exit()
}

/// An argument that no option takes, of a command that takes a program after `--`.
fn program_without_dashes(root: &Command, arguments: &[OsString], error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument || given.starts_with('-') {
        return None;
    }
    let is_command = |argument: &&OsString| argument.to_str().is_some_and(|name| root.find_subcommand(name).is_some());
    let name = arguments.iter().skip(1).find(is_command)?.to_str()?;
    let takes_program = root.find_subcommand(name)?.get_arguments().any(Arg::is_last_set);
    let at = arguments.iter().position(|argument| argument.to_str() == Some(given))?;
    let program: Vec<&str> = arguments[at..].iter().filter_map(|argument| argument.to_str()).collect();
    takes_program.then(|| format!("write `--` before the program: fencepost {name} -- {}", program.join(" ")))
}

fn is_configured(command: &str) -> bool {
    !UNCONFIGURED.contains(&command)
}

/// An empty variable is as good as none: CI services set them so.
fn mirrored(arg: Arg) -> Arg {
    let name = arg.get_long().map(|long| format!("FENCEPOST_{}", long.to_uppercase().replace('-', "_")));
    match name.filter(|name| env::var_os(name).is_some_and(|value| !value.is_empty())) {
        Some(name) => arg.env(name).hide_env(true),
        None => arg,
    }
}

/// Parses again, with the file's values; none: there is no file.
fn configured(
    root: &Command,
    arguments: &[OsString],
    matches: &ArgMatches,
    name: &str,
    given: &ArgMatches,
) -> Result<Option<ArgMatches>, ConfigError> {
    let path = matches.get_one::<PathBuf>("config").map(PathBuf::as_path);
    let commands: Vec<&Command> = root.get_subcommands().filter(|command| is_configured(command.get_name())).collect();
    let Some(file) = ConfigFile::find(path, &commands)? else { return Ok(None) };
    let command = commands.iter().find(|command| command.get_name() == name).expect("clap has found it");
    let mut arguments = arguments.to_vec();
    let mut root = root.clone();
    for setting in file.settings(command)? {
        let arg = command.get_arguments().find(|arg| *arg.get_id() == setting.id).expect("it is from this command");
        let added = adds_up(arg) && given.value_source(&setting.id) == Some(ValueSource::CommandLine);
        if added {
            insert(&mut arguments, name, arg, &setting);
        } else {
            let Setting { id, values } = setting;
            root = root.mut_subcommand(name, |command| command.mut_arg(id, |arg| arg.default_values(values)));
        }
    }
    // Without the file all was well.
    let refused = |error: clap::Error| ConfigError::Value { path: file.path.clone(), told: reason(&error) };
    help::arrange(root).try_get_matches_from(arguments).map(Some).map_err(refused)
}

/// An option whose values are separated by commas is one list, which is replaced as a whole.
fn adds_up(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append) && arg.get_value_delimiter().is_none()
}

/// Before what the user gave. No value of a global option is the name of a command, so that its first occurrence is the command.
fn insert(arguments: &mut Vec<OsString>, command: &str, arg: &Arg, setting: &Setting) {
    let at = arguments.iter().skip(1).position(|argument| argument == command).map_or(arguments.len(), |at| at + 2);
    let long = arg.get_long().unwrap_or_default();
    arguments.splice(at..at, setting.values.iter().map(|value| format!("--{long}={value}").into()));
}

/// clap's message on one line, without the hint to `--help`.
fn reason(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("For more information"));
    let said: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    said.join(" ").trim_start_matches("error: ").to_owned()
}
