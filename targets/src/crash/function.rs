//! Which function a line of C, C++ or Rust is in, from the braces alone.
//!
//! Good enough for the programs of this suite: both arms of an `#if` must balance their braces, and a brace in a character or
//! string literal must be alone in it with ordinary escapes. Closures and blocks belong to the function around them.

use std::ops::RangeInclusive;

/// A function's name without its class or module, and its lines from the header to the closing brace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub lines: RangeInclusive<u32>,
}

pub(super) fn innermost(functions: &[Function], line: u32) -> Option<&Function> {
    let around = functions.iter().filter(|function| function.lines.contains(&line));
    around.min_by_key(|function| function.lines.end() - function.lines.start())
}

pub(super) fn all(text: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    // What is open: a function with its first line, or any other block.
    let mut open: Vec<Option<(String, u32)>> = Vec::new();
    let mut header = String::new();
    let mut header_line = 0;
    for (line, c) in code(text) {
        match c {
            '{' => {
                open.push(function_name(&header).map(|name| (name, header_line)));
                header.clear();
            }
            '}' => {
                if let Some(Some((name, first))) = open.pop() {
                    functions.push(Function { name, lines: first..=line });
                }
                header.clear();
            }
            ';' => header.clear(),
            _ => {
                if header.trim().is_empty() {
                    header_line = line;
                }
                header.push(c);
            }
        }
    }
    functions
}

/// The text without comments, literals and preprocessor lines, each character with its line.
fn code(text: &str) -> Vec<(u32, char)> {
    let mut all = Vec::new();
    let mut in_comment = false;
    for (line, content) in (1u32..).zip(text.lines()) {
        let start = content.trim_start();
        if !in_comment && start.starts_with('#') && !start.starts_with("#[") {
            continue;
        }
        let mut rest = content;
        while let Some(c) = rest.chars().next() {
            let skipped = if in_comment {
                let end = rest.find("*/");
                in_comment = end.is_none();
                end.map_or(rest.len(), |at| at + 2)
            } else if rest.starts_with("//") {
                rest.len()
            } else if rest.starts_with("/*") {
                in_comment = true;
                2
            } else if let Some(len) = literal(rest) {
                all.push((line, '_'));
                len
            } else {
                all.push((line, c));
                c.len_utf8()
            };
            rest = &rest[skipped..];
        }
        all.push((line, ' '));
    }
    all
}

/// The length of the string or character literal that `rest` begins with. A lone quote is a Rust lifetime.
fn literal(rest: &str) -> Option<usize> {
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + 1),
            _ if quote == '\'' && at > 1 && !rest[1..].starts_with('\\') => return None,
            _ => {}
        }
    }
    None
}

/// The name in `… name(…) …`, if that is the header of a function and not of a block or a type.
fn function_name(header: &str) -> Option<String> {
    let words: Vec<&str> = header.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    if let Some(at) = words.iter().position(|word| *word == "fn") {
        return words[at + 1..].iter().find(|word| !word.is_empty()).map(|word| (*word).to_owned());
    }
    // Rust has no parenthesis behind these: `if is_so(x) {`.
    const STATEMENTS: [&str; 9] = ["if", "for", "while", "loop", "switch", "do", "else", "catch", "match"];
    if words.iter().find(|word| !word.is_empty()).is_some_and(|first| STATEMENTS.contains(first)) {
        return None;
    }
    const BLOCKS: [&str; 15] = [
        "if",
        "for",
        "while",
        "switch",
        "do",
        "else",
        "catch",
        "struct",
        "union",
        "enum",
        "class",
        "namespace",
        "match",
        "impl",
        // Of libpmemobj.
        "TX_BEGIN",
    ];
    // An attribute such as `__attribute__((noreturn))` comes before the name, an initialiser has an `=`.
    let before = header.rsplit("))").next().filter(|rest| rest.contains('(')).unwrap_or(header);
    let name = before.split('(').next().filter(|_| before.contains('('))?;
    let name = name.trim_end().rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    let is_name = !name.is_empty() && !BLOCKS.contains(&name) && !before.split('(').next()?.contains('=');
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(String, u32, u32)> {
        let mut found: Vec<_> = all(text).into_iter().map(|f| (f.name, *f.lines.start(), *f.lines.end())).collect();
        found.sort_by_key(|(_, first, _)| *first);
        found
    }

    #[test]
    fn a_condition_that_calls_is_no_function() {
        let text = "fn a() {\n    if has(7) && b {\n    } else if has(8) {\n    }\n}\n";
        assert_eq!(names(text), [("a".to_owned(), 1, 5)]);
    }

    #[test]
    fn c_and_cxx() {
        let text = "struct s { int a[2]; };\nstatic void\nf(int x)\n{\n\tif (x) { y(); }\n\tput('{', \"}\\\"\"); // }\n}\n\
                    #define X {\ntemplate <class T> struct Q {\n\tint g() const {\n\t}\n};\n\
                    static __attribute__((noinline)) int h(void) { int a[] = {1}; return 0; }\n";
        assert_eq!(names(text), [("f".to_owned(), 2, 7), ("g".to_owned(), 10, 11), ("h".to_owned(), 13, 13)]);
    }

    #[test]
    fn rust() {
        let text = "struct S<'a> { a: &'a u8 }\nimpl<'a> S<'a> {\n    #[inline]\n    pub unsafe fn f<T>(&self) -> T\n    where\n        T: X,\n    {\n        match x { _ => {} }\n    }\n}\n";
        assert_eq!(names(text), [("f".to_owned(), 3, 9)]);
    }

    #[test]
    fn the_innermost_function_counts() {
        let functions = all("fn a() {\nfn b() {\n}\n}\n");
        assert_eq!(innermost(&functions, 3).map(|f| f.name.as_str()), Some("b"));
        assert_eq!(innermost(&functions, 4).map(|f| f.name.as_str()), Some("a"));
        assert_eq!(innermost(&functions, 9), None);
    }
}
