//! The `//~` comments of a lint program: the findings that must be reported, at the lines that are to blame.
//!
//! `//~ FP0101 FP0204` speaks of its own line; a `^` after the tilde (`//~^ FP0101`) of the line above, `//~^^` of the one above that.

use std::path::Path;

use crate::TargetError;

/// One finding that must be there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expectation {
    /// From 1, as compilers count.
    pub line: u32,
    /// The rule's id, as in `FP0101`.
    pub rule: String,
}

pub(crate) fn parse(path: &Path, text: &str) -> Result<Vec<Expectation>, TargetError> {
    let mut all = Vec::new();
    for (line, content) in (1u32..).zip(text.lines()) {
        let Some((_, comment)) = content.split_once("//~") else { continue };
        let rules = comment.trim_start_matches('^');
        let above = (comment.len() - rules.len()) as u32;
        let wrong =
            || TargetError::Expectation { path: path.to_owned(), line: line as usize, text: comment.to_owned() };
        let guilty = line.checked_sub(above).filter(|line| *line > 0).ok_or_else(wrong)?;
        if rules.trim().is_empty() || !rules.split_whitespace().all(is_rule_id) {
            return Err(wrong());
        }
        all.extend(rules.split_whitespace().map(|rule| Expectation { line: guilty, rule: rule.to_owned() }));
    }
    all.sort();
    Ok(all)
}

fn is_rule_id(word: &str) -> bool {
    word.strip_prefix("FP").is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_rules_and_lines_above() {
        let text = "a; //~ FP0201 FP0101\nb;\n//~^ FP0102\n";
        let found = parse(Path::new("x.c"), text).expect("valid expectations");
        let found: Vec<_> = found.iter().map(|e| (e.line, e.rule.as_str())).collect();
        assert_eq!(found, [(1, "FP0101"), (1, "FP0201"), (2, "FP0102")]);
    }

    #[test]
    fn a_typo_is_not_taken_for_a_program_without_findings() {
        for text in ["a; //~ FP101", "a; //~", "//~^ FP0101"] {
            let error = parse(Path::new("x.c"), text).expect_err(text);
            assert!(error.to_string().starts_with("x.c:1: "), "{error}");
        }
    }
}
