//! `fencepost.toml`: the keys are the names of options.
//!
//! ```toml
//! fail-on = "performance"          # for every command that has the option
//! [check]                          # for one
//! recover = "./kv pool verify"
//! [lint.severity]                  # options of the form NAME=VALUE can be tables
//! FP0301 = "allow"
//! ```

use std::any::TypeId;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use toml::{Table, Value};

use super::suggest::did_you_mean;

const NAME: &str = "fencepost.toml";

/// `check` does what these two do, so that it takes what is said for them; what is said for itself comes first.
const PARTS_OF_CHECK: [&str; 2] = ["lint", "crash"];

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Parse { path: PathBuf, source: Box<toml::de::Error> },
    #[error("{}: {whose} option `{key}`{hint}", path.display())]
    UnknownKey { path: PathBuf, whose: String, key: String, hint: String },
    #[error("{}: `{key}` cannot be {found}; write it as on the command line, several values as a list", path.display())]
    Shape { path: PathBuf, key: String, found: &'static str },
    #[error("{}: {told}", path.display())]
    Value { path: PathBuf, told: String },
}

/// One option with the values that the file gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What clap knows the option by.
    pub id: String,
    pub values: Vec<String>,
}

/// A configuration whose keys are all known.
#[derive(Debug)]
pub struct ConfigFile {
    pub path: PathBuf,
    table: Table,
}

impl ConfigFile {
    /// Reads `given`, or the nearest `fencepost.toml` in the current directory and those above it, if there is one.
    pub fn find(given: Option<&Path>, commands: &[&Command]) -> Result<Option<ConfigFile>, ConfigError> {
        let Some(path) = given.map(Path::to_owned).or_else(nearest) else { return Ok(None) };
        let text = fs::read_to_string(&path).map_err(|source| ConfigError::Read { path: path.clone(), source })?;
        ConfigFile::parse(&text, path, commands).map(Some)
    }

    /// `path` is for messages, and what relative paths are relative to. `commands` are those that take options from it.
    fn parse(text: &str, path: PathBuf, commands: &[&Command]) -> Result<ConfigFile, ConfigError> {
        let table: Table = match toml::from_str(text) {
            Ok(table) => table,
            Err(source) => return Err(ConfigError::Parse { path, source: Box::new(source) }),
        };
        let file = ConfigFile { path, table };
        file.check_keys(commands)?;
        Ok(file)
    }

    fn check_keys(&self, commands: &[&Command]) -> Result<(), ConfigError> {
        let unknown = |whose: String, key: &str, known: Vec<&str>| ConfigError::UnknownKey {
            path: self.path.clone(),
            whose,
            key: key.to_owned(),
            hint: did_you_mean(key, known),
        };
        for (key, value) in &self.table {
            let section = commands.iter().find(|command| command.get_name() == key);
            if let (Some(command), Value::Table(section)) = (section, value) {
                if let Some(key) = section.keys().find(|key| option(command, key).is_none()) {
                    return Err(unknown(format!("`fencepost {}` has no", command.get_name()), key, names(command)));
                }
            } else if !commands.iter().any(|command| option(command, key).is_some()) {
                let names = commands.iter().flat_map(|command| names(command));
                let known = names.chain(commands.iter().map(|command| command.get_name()));
                return Err(unknown("no command has an".to_owned(), key, known.collect()));
            }
        }
        Ok(())
    }

    /// What the file says for a command, each option once.
    pub fn settings(&self, command: &Command) -> Result<Vec<Setting>, ConfigError> {
        let mut sections = vec![&self.table];
        let name = command.get_name();
        let parts = PARTS_OF_CHECK.iter().copied().filter(|_| name == "check");
        sections.extend(parts.chain([name]).filter_map(|name| self.table.get(name)?.as_table()));
        let mut settings: Vec<Setting> = Vec::new();
        for (key, value) in sections.into_iter().flatten() {
            // What is for another command has been checked.
            let Some(arg) = option(command, key) else { continue };
            let id = arg.get_id().to_string();
            settings.retain(|earlier| earlier.id != id);
            settings.push(Setting { id, values: self.values(key, value, arg)? });
        }
        Ok(settings)
    }

    fn values(&self, key: &str, value: &Value, arg: &Arg) -> Result<Vec<String>, ConfigError> {
        let shape = |found| ConfigError::Shape { path: self.path.clone(), key: key.to_owned(), found };
        let several = matches!(arg.get_action(), clap::ArgAction::Append);
        let scalar = |value: &Value| match value {
            Value::String(text) => Ok(self.resolved(text, arg)),
            Value::Integer(number) => Ok(number.to_string()),
            Value::Float(number) => Ok(number.to_string()),
            Value::Boolean(truth) => Ok(truth.to_string()),
            Value::Datetime(_) => Err(shape("a date")),
            Value::Array(_) => Err(shape("a list")),
            Value::Table(_) => Err(shape("a table")),
        };
        match value {
            Value::Array(list) if several => list.iter().map(scalar).collect(),
            Value::Table(table) if several => {
                table.iter().map(|(name, value)| Ok(format!("{name}={}", scalar(value)?))).collect()
            }
            value => Ok(vec![scalar(value)?]),
        }
    }

    /// Files are named relative to the configuration, wherever fencepost is started.
    fn resolved(&self, text: &str, arg: &Arg) -> String {
        if arg.get_value_parser().type_id() != TypeId::of::<PathBuf>() {
            return text.to_owned();
        }
        self.path.parent().unwrap_or(Path::new("")).join(text).display().to_string()
    }
}

fn nearest() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    // In the current directory it has a short name, and so have the paths in it.
    let short = PathBuf::from(NAME);
    if short.exists() {
        return Some(short);
    }
    here.ancestors().map(|folder| folder.join(NAME)).find(|path| path.exists())
}

/// An option by its name; positional arguments belong to one call only.
fn option<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| {
        arg.get_long().is_some_and(|long| long == key)
            || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&key))
    })
}

fn names(command: &Command) -> Vec<&str> {
    command.get_arguments().filter_map(Arg::get_long).collect()
}

#[cfg(test)]
mod tests {
    use clap::{ArgAction, value_parser};

    use super::*;

    fn commands() -> [Command; 2] {
        let common = |name: &'static str| {
            Command::new(name)
                .arg(Arg::new("fail_on").long("fail-on"))
                .arg(Arg::new("rules").long("rules").action(ArgAction::Append).value_parser(value_parser!(PathBuf)))
                .arg(Arg::new("severity").long("severity").action(ArgAction::Append))
        };
        [common("lint"), common("check").arg(Arg::new("every").long("every").action(ArgAction::SetTrue))]
    }

    fn settings(text: &str, command: usize) -> Result<Vec<(String, Vec<String>)>, String> {
        let commands = commands();
        let all: Vec<&Command> = commands.iter().collect();
        let file = ConfigFile::parse(text, PathBuf::from("a/fencepost.toml"), &all).map_err(|e| e.to_string())?;
        let settings = file.settings(&commands[command]).map_err(|e| e.to_string())?;
        Ok(settings.into_iter().map(|setting| (setting.id, setting.values)).collect())
    }

    #[test]
    fn the_section_of_a_command_comes_before_what_is_for_all() {
        let text = "fail-on = 'note'\nevery = true\n[lint]\nfail-on = 'never'\nrules = ['b.rhai', '/c.rhai']\n\
                    [lint.severity]\nFP0101 = 'allow'\n[check]\nfail-on = 'error'\n";
        let owned = |id: &str, values: &[&str]| (id.to_owned(), values.iter().map(|text| (*text).to_owned()).collect());
        let mut lint = settings(text, 0).unwrap();
        lint.sort();
        let rules = owned("rules", &["a/b.rhai", "/c.rhai"]);
        let severity = owned("severity", &["FP0101=allow"]);
        assert_eq!(lint, [owned("fail_on", &["never"]), rules.clone(), severity.clone()]);
        let mut check = settings(text, 1).unwrap();
        check.sort();
        assert_eq!(check, [owned("every", &["true"]), owned("fail_on", &["error"]), rules, severity]);
    }

    #[test]
    fn unknown_keys_are_named() {
        let told = |text: &str| settings(text, 0).unwrap_err();
        assert_eq!(
            told("[lint]\nfial-on = 'note'"),
            "a/fencepost.toml: `fencepost lint` has no option `fial-on`; did you mean `fail-on`?"
        );
        assert_eq!(told("[chekc]"), "a/fencepost.toml: no command has an option `chekc`; did you mean `check`?");
        assert!(told("[lint]\nevery = true").contains("`fencepost lint` has no option `every`"));
        assert!(told("fail-on = 1979-05-27").contains("`fail-on` cannot be a date"));
        assert!(told("fail-on = ['note']").contains("`fail-on` cannot be a list"));
        assert!(told("fail-on =").starts_with("a/fencepost.toml: TOML parse error"));
    }

    #[test]
    fn altered_files_are_read_or_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../parser-tests/corpus/config");
        parser_tests::hammer::hammer("config", &parser_tests::hammer::corpus(&folder), &|input| {
            let text = String::from_utf8_lossy(input);
            let _ = settings(&text, 0).and_then(|_| settings(&text, 1));
        });
    }
}
