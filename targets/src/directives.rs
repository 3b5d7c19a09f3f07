//! The `//@` lines at the head of a program (the README.md of its suite explains them).

use std::path::Path;

use crate::TargetError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
    Rust,
    Asm,
}

/// What two recordings of the program must have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compare {
    /// The events may come in any order.
    pub unordered: bool,
    /// Only the lengths of values count.
    pub lengths: bool,
    /// Call paths do not count.
    pub no_context: bool,
    /// Thread starts and ends are counted, their places do not matter.
    pub thread_events_float: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Directives {
    pub language: Option<Language>,
    pub flags: Vec<String>,
    pub needs: Vec<String>,
    pub library: Option<String>,
    pub args: Vec<String>,
    pub rules: Vec<String>,
    pub compare: Compare,
    pub pool_varies: bool,
    pub refusal: Option<String>,
}

impl Directives {
    pub fn parse(path: &Path, text: &str) -> Result<Directives, TargetError> {
        let mut all = Directives::default();
        for (number, line) in text.lines().enumerate() {
            let Some(directive) = line.strip_prefix("//@ ") else { break };
            all.take(directive).ok_or_else(|| TargetError::Directive {
                path: path.to_owned(),
                line: number + 1,
                text: directive.to_owned(),
            })?;
        }
        Ok(all)
    }

    fn take(&mut self, directive: &str) -> Option<()> {
        let (key, value) = directive.split_once(": ")?;
        let words = || value.split_whitespace().map(str::to_owned).collect();
        match key {
            "build" => {
                self.language = Some(match value {
                    "c" => Language::C,
                    "cxx" => Language::Cxx,
                    "rust" => Language::Rust,
                    "asm" => Language::Asm,
                    _ => return None,
                });
            }
            "cflags" => self.flags = words(),
            "needs" => self.needs = words(),
            "library" => self.library = Some(value.to_owned()),
            "args" => self.args = words(),
            "rules" => self.rules = words(),
            "compare" => {
                for word in value.split_whitespace() {
                    match word {
                        "exact" => {}
                        "unordered" => self.compare.unordered = true,
                        "lengths" => self.compare.lengths = true,
                        "no-context" => self.compare.no_context = true,
                        "thread-events-float" => self.compare.thread_events_float = true,
                        _ => return None,
                    }
                }
            }
            "pool" if value == "varies" => self.pool_varies = true,
            "refuses" => self.refusal = Some(value.to_owned()),
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_head_and_nothing_behind_it() {
        let text = "//@ build: asm\n//@ compare: exact lengths\n// prose\n//@ build: c\n";
        let d = Directives::parse(Path::new("x.S"), text).expect("valid directives");
        assert_eq!(d.language, Some(Language::Asm));
        assert_eq!(d.compare, Compare { lengths: true, ..Compare::default() });
    }

    #[test]
    fn names_the_line_of_a_typo() {
        let error = Directives::parse(Path::new("x.c"), "//@ build: c\n//@ comapre: exact\n").expect_err("a typo");
        assert!(error.to_string().starts_with("x.c:2: unknown directive `comapre: exact`"), "{error}");
    }
}
