//! Functions by the names that users write.

use std::borrow::Cow;

use addr2line::demangle_auto;

/// Is this symbol the function that the user calls so? As the linker has it, or as it stands in a C++ or Rust source: `ns::begin(int)`,
/// or without parameters. Blanks do not matter.
pub fn is_named(symbol: &str, wanted: &str) -> bool {
    if symbol == wanted {
        return true;
    }
    // Names of C and mangled ones have none of these.
    if !wanted.contains(['(', ':']) {
        return false;
    }
    let full = demangle_auto(Cow::Borrowed(symbol), None);
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    let (full, wanted) = (dense(&full), dense(wanted));
    full == wanted || without_parameters(&full) == wanted
}

/// Up to the parenthesis that ends the name; those of anonymous namespaces and of template arguments are part of it.
fn without_parameters(name: &str) -> &str {
    let mut depth = 0;
    let mut at = 0;
    while let Some(rest) = name.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(after) = rest.strip_prefix("(anonymousnamespace)") {
            at = name.len() - after.len();
            continue;
        }
        let first = rest.chars().next().unwrap_or_default();
        match first {
            '<' => depth += 1,
            '>' => depth -= 1,
            '(' if depth == 0 => return &name[..at],
            _ => {}
        }
        at += first.len_utf8();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_they_are_written() {
        let mangled = "_ZN2ns8begin_opEil";
        for wanted in [mangled, "ns::begin_op(int, long)", "ns::begin_op(int,long)", "ns::begin_op"] {
            assert!(is_named(mangled, wanted), "{wanted}");
        }
        for wanted in ["begin_op", "ns::begin_op(int)", "ns::begin", "other::begin_op"] {
            assert!(!is_named(mangled, wanted), "{wanted}");
        }
        assert!(is_named("begin_op", "begin_op") && !is_named("begin_op", "ns::begin_op"));
    }

    #[test]
    fn parentheses_inside_of_a_name() {
        assert_eq!(without_parameters("(anonymousnamespace)::f(int)"), "(anonymousnamespace)::f");
        assert_eq!(without_parameters("g<void(int)>(long)"), "g<void(int)>");
        assert_eq!(without_parameters("plain"), "plain");
    }
}
