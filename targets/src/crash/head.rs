//! The `//!` lines at the head of a program: what it is, and how it is run, recovered and built.

use std::path::Path;

use super::target::Variant;
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
    /// Why `fencepost check` does not find its bugs, of programs that show a limit of the model.
    pub missed: Option<String>,
    /// The file that says what operations look like, of programs that take operations.
    pub grammar: Option<String>,
    /// What the bugs do to a user; of all variants if there is a grammar.
    pub bugs: Vec<Bug>,
    /// Sets of bugs that one program can have together; unless the head says so: all of them.
    pub together: Vec<Vec<Variant>>,
}

/// What a user sees of a bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bug {
    pub variant: Variant,
    /// As in `lost key`, maybe with more behind a dash.
    pub symptom: String,
    /// Which kind of operation it is in.
    pub operation: String,
}

/// The keys that a head can have; any other `//!` line is prose.
const KEYS: [&str; 9] = ["variants", "run", "recover", "env", "flags", "options", "missed", "grammar", "together"];
/// What a program that takes operations is run and recovered by, unless it says otherwise.
const WITH_OPERATIONS: [&str; 2] = ["{bin}", "{pool}"];

impl Head {
    pub fn parse(path: &Path, text: &str) -> Result<Head, TargetError> {
        let mut head = Head {
            variants: 0,
            run: Vec::new(),
            recover: Vec::new(),
            env: Vec::new(),
            flags: Vec::new(),
            options: Vec::new(),
            missed: None,
            grammar: None,
            bugs: Vec::new(),
            together: Vec::new(),
        };
        for (number, line) in (1..).zip(text.lines()) {
            let Some(comment) = line.strip_prefix("//!") else { break };
            let Some((key, value)) = comment.trim().split_once(": ") else { continue };
            if !KEYS.contains(&key) && !key.starts_with("bug ") {
                continue;
            }
            head.take(key, value.trim()).ok_or_else(|| TargetError::Directive {
                path: path.to_owned(),
                line: number,
                text: format!("{key}: {value}"),
            })?;
        }
        if head.grammar.is_some() {
            head.run = if head.run.is_empty() { WITH_OPERATIONS.map(str::to_owned).to_vec() } else { head.run };
            head.recover = if head.recover.is_empty() { head.run.clone() } else { head.recover };
        }
        if head.together.is_empty() {
            head.together.push((1..=head.variants).map(Variant).collect());
        }
        let missing = match &head {
            Head { variants: 0, .. } => Some("variants"),
            Head { run, .. } if run.is_empty() => Some("run"),
            Head { recover, .. } if recover.is_empty() => Some("recover"),
            Head { together, variants, .. } if !is_each_once(together, *variants) => Some("together"),
            Head { grammar: Some(_), bugs, variants, .. } if !are_all(bugs, *variants) => Some("bug N"),
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
            "missed" => self.missed = Some(value.to_owned()),
            "grammar" => self.grammar = Some(value.to_owned()),
            "together" => {
                let set = |set: &str| set.split_whitespace().map(|bug| bug.parse().ok().map(Variant)).collect();
                self.together = value.split('|').map(set).collect::<Option<_>>()?;
            }
            "env" => {
                for word in value.split_whitespace() {
                    let (name, value) = word.split_once('=')?;
                    self.env.push((name.to_owned(), value.to_owned()));
                }
            }
            _ => {
                let variant = Variant(key.strip_prefix("bug ")?.parse().ok()?);
                let (symptom, operation) = value.rsplit_once(", ")?;
                self.bugs.push(Bug { variant, symptom: symptom.to_owned(), operation: operation.to_owned() });
            }
        }
        Some(())
    }
}

/// Is each variant in one of the sets?
fn is_each_once(sets: &[Vec<Variant>], variants: u32) -> bool {
    let mut all: Vec<Variant> = sets.concat();
    all.sort_unstable();
    all.into_iter().eq((1..=variants).map(Variant))
}

/// Is there one line for each variant, in order?
fn are_all(bugs: &[Bug], variants: u32) -> bool {
    bugs.iter().map(|bug| bug.variant).eq((1..=variants).map(Variant))
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
    fn a_program_with_operations_says_what_its_bugs_do() {
        let text = "//! variants: 1\n//! grammar: kv.toml\n//! bug 1: lost key — for ever, insert that grows\n";
        let head = Head::parse(Path::new("x.c"), text).expect("a valid head");
        assert_eq!((head.run.join(" "), &head.run), ("{bin} {pool}".to_owned(), &head.recover));
        assert_eq!(
            (head.bugs[0].symptom.as_str(), head.bugs[0].operation.as_str()),
            ("lost key — for ever", "insert that grows")
        );
        let without = text.replace("bug 1: ", "bug 2: ");
        let error = Head::parse(Path::new("x.c"), &without).expect_err("bug 1 is missing");
        assert!(error.to_string().contains("no `//! bug N:` line"), "{error}");
    }

    #[test]
    fn bugs_are_together_unless_the_head_parts_them() {
        let sets = |more: &str| Head::parse(Path::new("x.c"), &format!("{HEAD}{more}")).map(|head| head.together);
        assert_eq!(sets("").expect("a valid head"), [[Variant(1), Variant(2)]]);
        assert_eq!(sets("//! together: 1 | 2\n").expect("a valid head"), [[Variant(1)], [Variant(2)]]);
        for wrong in ["1", "1 2 | 2", "1 | two"] {
            assert!(sets(&format!("//! together: {wrong}\n")).is_err(), "{wrong}");
        }
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
