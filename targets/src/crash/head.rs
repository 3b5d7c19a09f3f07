//! The `//!` lines at the head of a program: what it is, and how it is run, recovered and built.

use std::path::Path;

use crate::TargetError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub variants: u32,
    /// Words; `{bin}` and `{pool}` stand for the two paths.
    pub run: Vec<String>,
    pub recover: Vec<String>,
    pub env: Vec<(String, String)>,
    pub flags: Vec<String>,
    /// For `fencepost check`.
    pub options: Vec<String>,
}

/// The keys that a head can have; any other `//!` line is prose.
const KEYS: [&str; 6] = ["variants", "run", "recover", "env", "flags", "options"];

impl Head {
    pub fn parse(path: &Path, text: &str) -> Result<Head, TargetError> {
        let mut head = Head {
            variants: 0,
            run: Vec::new(),
            recover: Vec::new(),
            env: Vec::new(),
            flags: Vec::new(),
            options: Vec::new(),
        };
        for (number, line) in (1..).zip(text.lines()) {
            let Some(comment) = line.strip_prefix("//!") else { break };
            let Some((key, value)) = comment.trim().split_once(": ") else { continue };
            if !KEYS.contains(&key) {
                continue;
            }
            head.take(key, value.trim()).ok_or_else(|| TargetError::Directive {
                path: path.to_owned(),
                line: number,
                text: format!("{key}: {value}"),
            })?;
        }
        let missing = match &head {
            Head { variants: 0, .. } => Some("variants"),
            Head { run, .. } if run.is_empty() => Some("run"),
            Head { recover, .. } if recover.is_empty() => Some("recover"),
            _ => None,
        };
        match missing {
            Some(key) => Err(TargetError::NoHeadLine { path: path.to_owned(), key }),
            None => Ok(head),
        }
    }

    fn take(&mut self, key: &str, value: &str) -> Option<()> {
        let words = || value.split_whitespace().map(str::to_owned).collect();
        match key {
            "variants" => self.variants = value.parse().ok()?,
            "run" => self.run = words(),
            "recover" => self.recover = words(),
            "flags" => self.flags = words(),
            "options" => self.options = words(),
            _ => {
                for word in value.split_whitespace() {
                    let (name, value) = word.split_once('=')?;
                    self.env.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "//! A queue: in a ring.\n//! variants: 2\n//! run: {bin} {pool} run\n//! recover: {bin} {pool} check\n";

    #[test]
    fn reads_the_head_and_nothing_behind_it() {
        let text = format!("{HEAD}//! env: A=1 B=x=y\nint main;\n//! variants: 9\n");
        let head = Head::parse(Path::new("x.c"), &text).expect("a valid head");
        assert_eq!((head.variants, head.recover.len()), (2, 3));
        assert_eq!(head.env, [("A".into(), "1".into()), ("B".into(), "x=y".into())]);
    }

    #[test]
    fn says_what_is_missing_or_wrong() {
        let without = HEAD.replace("//! recover", "// recover");
        let error = Head::parse(Path::new("x.c"), &without).expect_err("no recovery");
        assert!(error.to_string().contains("no `//! recover:` line"), "{error}");
        let typo = HEAD.replace("variants: 2", "variants: two");
        let error = Head::parse(Path::new("x.c"), &typo).expect_err("no number");
        assert!(error.to_string().starts_with("x.c:2: "), "{error}");
    }
}
