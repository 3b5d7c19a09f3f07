//! A command in one string, as `--recover` and `--checker` take it.
//!
//! Words are split as a shell would, and the program is started directly: a shell in between would be a process more in
//! every run. Where the string needs a shell (pipes, variables, patterns), `sh -c` gets it.

use std::ffi::OsString;
use std::path::PathBuf;

use recover::command::{Command, Input};
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandLineError {
    #[error("the command {text:?} is empty; name a program")]
    Empty { text: String },
    #[error("the command {text:?} has a quote that does not end")]
    Quote { text: String },
}

/// The command of this string, with an empty standard input.
pub fn command_line(text: &str, dir: PathBuf, env: Vec<(OsString, OsString)>) -> Result<Command, CommandLineError> {
    let words = match split(text)? {
        Split::Words(words) => words,
        Split::NeedsShell => vec!["sh".into(), "-c".into(), text.into()],
    };
    let (program, args) = words.split_first().ok_or_else(|| CommandLineError::Empty { text: text.into() })?;
    let args = args.iter().map(OsString::from).collect();
    Ok(Command { program: program.into(), args, env, dir, stdin: Input::Empty })
}

#[derive(Debug, PartialEq, Eq)]
enum Split {
    Words(Vec<String>),
    NeedsShell,
}

fn split(text: &str) -> Result<Split, CommandLineError> {
    let unfinished = || CommandLineError::Quote { text: text.into() };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let (inside, rest) = chars.as_str().split_once('\'').ok_or_else(unfinished)?;
                word.get_or_insert_default().push_str(inside);
                chars = rest.chars();
            }
            '"' => {
                let (inside, rest) = chars.as_str().split_once('"').ok_or_else(unfinished)?;
                if inside.contains(['$', '`', '\\']) {
                    return Ok(Split::NeedsShell);
                }
                word.get_or_insert_default().push_str(inside);
                chars = rest.chars();
            }
            '\\' => word.get_or_insert_default().push(chars.next().ok_or_else(unfinished)?),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | '{' => {
                return Ok(Split::NeedsShell);
            }
            // A comment, a home directory, a negation, a variable before the command.
            '#' | '~' | '!' if word.is_none() => return Ok(Split::NeedsShell),
            '=' if words.is_empty() => return Ok(Split::NeedsShell),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    Ok(Split::Words(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        match split(text).unwrap() {
            Split::Words(words) => words,
            Split::NeedsShell => panic!("{text}: no shell needed"),
        }
    }

    #[test]
    fn words_and_quotes() {
        assert_eq!(words(" ./kv  pool get "), ["./kv", "pool", "get"]);
        assert_eq!(words(r#"kv 'a b' "c d"e \ f '' x#y k=v"#), ["kv", "a b", "c de", " f", "", "x#y", "k=v"]);
    }

    #[test]
    fn what_needs_a_shell_gets_one() {
        for text in ["kv | grep x", "kv $HOME", "A=1 kv", "kv \"$x\"", "kv *.pool", "cd d && kv", "~/kv", "kv >out"] {
            assert_eq!(split(text), Ok(Split::NeedsShell), "{text}");
            let command = command_line(text, "/".into(), Vec::new()).unwrap();
            assert_eq!((command.program, command.args), ("sh".into(), vec!["-c".into(), text.into()]));
        }
    }

    #[test]
    fn wrong_ones_are_errors() {
        let wrong = |text: &str| command_line(text, "/".into(), Vec::new()).unwrap_err().to_string();
        assert!(wrong("  ").contains("empty"));
        assert!(wrong("kv 'x").contains("quote"));
        assert!(wrong("kv \\").contains("quote"));
    }
}
