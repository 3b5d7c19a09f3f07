//! The `//~` comments of a program: the guilty lines of its variants.
//!
//! `//~ 3 ordering` speaks of its own line; each `^` after the tilde of one line higher. A variant may have several guilty lines
//! (the stores of one record), all of one class: a finding at any of them is right.

use std::fmt;
use std::path::Path;

use super::function::{self, Function};
use super::target::Variant;
use crate::TargetError;

/// What is wrong, in the words of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    Durability,
    Ordering,
    Atomicity,
    Recovery,
}

impl Class {
    pub const ALL: [Class; 4] = [Class::Durability, Class::Ordering, Class::Atomicity, Class::Recovery];

    pub fn name(self) -> &'static str {
        match self {
            Class::Durability => "durability",
            Class::Ordering => "ordering",
            Class::Atomicity => "atomicity",
            Class::Recovery => "recovery",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One guilty line of one variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    pub variant: Variant,
    pub class: Class,
    /// From 1, as compilers count.
    pub line: u32,
    /// The function that the line is in.
    pub function: Function,
}

pub(crate) fn parse(path: &Path, text: &str, variants: u32) -> Result<Vec<Expectation>, TargetError> {
    let functions = function::all(text);
    let mut all: Vec<Expectation> = Vec::new();
    for (line, content) in (1u32..).zip(text.lines()) {
        let Some((_, comment)) = content.split_once("//~") else { continue };
        let wrong = || TargetError::Marker { path: path.to_owned(), line, text: comment.trim().to_owned() };
        let words = comment.trim_start_matches('^');
        let above = (comment.len() - words.len()) as u32;
        let line = line.checked_sub(above).filter(|line| *line > 0).ok_or_else(wrong)?;
        let function = function::innermost(&functions, line).ok_or_else(wrong)?.clone();
        let mut words = words.split_whitespace();
        while let Some(number) = words.next() {
            let variant = number.parse().ok().filter(|n| (1..=variants).contains(n)).map(Variant).ok_or_else(wrong)?;
            let class = words.next().and_then(|word| Class::ALL.into_iter().find(|class| class.name() == word));
            let class = class.ok_or_else(wrong)?;
            if all.iter().any(|other| other.variant == variant && other.class != class) {
                return Err(wrong());
            }
            all.push(Expectation { variant, class, line, function: function.clone() });
        }
    }
    all.sort_by_key(|expectation| (expectation.variant, expectation.line));
    match (1..=variants).map(Variant).find(|variant| all.iter().all(|e| e.variant != *variant)) {
        Some(variant) => Err(TargetError::NoMarker { path: path.to_owned(), variant: variant.0 }),
        None => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_variants_and_lines_above() {
        let text = "void f(void)\n{\n\ta; //~ 1 ordering 2 durability\n\tb;\n\t//~^ 1 ordering\n}\n";
        let found = parse(Path::new("x.c"), text, 2).expect("valid markers");
        let found: Vec<_> = found.iter().map(|e| (e.variant.0, e.line, e.class, e.function.name.as_str())).collect();
        assert_eq!(found, [(1, 3, Class::Ordering, "f"), (1, 4, Class::Ordering, "f"), (2, 3, Class::Durability, "f")]);
    }

    #[test]
    fn a_typo_or_a_variant_without_a_marker_is_an_error() {
        for text in ["//~ 3 ordering", "//~ 1 order", "//~ ordering", "//~ 1 ordering 1 atomicity"] {
            let text = format!("int f() {{\n{text}\n}}\n");
            let error = parse(Path::new("x.c"), &text, 2).expect_err(&text);
            assert!(error.to_string().starts_with("x.c:2: "), "{error}");
        }
        let error = parse(Path::new("x.c"), "int f() {\n//~ 1 ordering\n}", 2).expect_err("2 is missing");
        assert!(error.to_string().contains("variant 2"), "{error}");
    }
}
