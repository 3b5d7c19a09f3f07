//! What a line of source stores to, in its own words: `slot->token` of `slot->token = 1;`.
//!
//! Debug information says which line an instruction belongs to, but hardly ever which field a pointer led it to; the line
//! itself does. Only plain cases are taken; a wrong name would be worse than none.

use std::fs;
use std::path::Path;

/// Functions and macros whose first argument is what they write.
const WRITERS: [&str; 10] = [
    "memcpy",
    "memmove",
    "memset",
    "strcpy",
    "strncpy",
    "pmem_memcpy_persist",
    "pmem_memset_persist",
    "_mm_stream_si64",
    "atomic_store",
    "PUT",
];
/// Those whose first argument is the pool, and whose second is what they write.
const POOL_WRITERS: [&str; 6] = [
    "pmemobj_memcpy",
    "pmemobj_memmove",
    "pmemobj_memset",
    "pmemobj_memcpy_persist",
    "pmemobj_memmove_persist",
    "pmemobj_memset_persist",
];
const LONGEST: usize = 48;

/// The place that line `number` of a file stores to. Relative paths are those of a program that was built in `folder`.
pub fn of_line(file: &str, number: u32, folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join(file)).ok()?;
    of_text(text.lines().nth(number.checked_sub(1)? as usize)?)
}

/// The place that a line of source stores to.
pub fn of_text(line: &str) -> Option<String> {
    let code = line.split("//").next().unwrap_or_default().trim();
    let place = assigned(code).or_else(|| written(code))?;
    let place = place.trim().trim_start_matches('&').trim_start_matches("(*").trim();
    let plain = |c: char| c.is_alphanumeric() || "_->.[]* +&()".contains(c);
    let fine = !place.is_empty() && place.len() <= LONGEST && place.chars().all(plain) && balanced(place);
    fine.then(|| place.to_owned())
}

/// The left side of a simple or compound assignment that is a statement of its own.
fn assigned(code: &str) -> Option<&str> {
    let at = code.char_indices().find(|&(at, c)| {
        let before = code[..at].chars().next_back().unwrap_or(' ');
        let after = code[at + 1..].chars().next().unwrap_or(' ');
        c == '=' && after != '=' && !"=!<>".contains(before)
    })?;
    let left = code[..at.0].trim_end_matches(['+', '-', '|', '&', '^', '*', '/']).trim();
    // Declarations, conditions and loops are not stores to PM.
    let word = left.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let first_is_keyword = matches!(word, "if" | "for" | "while" | "return" | "let" | "const" | "static" | "auto");
    // `root = open(pop)`: a variable of the function, which gets what was called. What that stored has another name.
    let is_variable = left.chars().all(|c| c.is_alphanumeric() || c == '_') && code[at.0..].contains('(');
    (!first_is_keyword && !is_variable && !outermost(left).trim().contains(' ')).then_some(left)
}

/// Without what stands in parentheses or brackets: a place is one word then, a declaration at least two.
fn outermost(code: &str) -> String {
    let mut depth = 0;
    let outside = code.chars().filter(|&c| {
        depth += i32::from("([".contains(c)) - i32::from(")]".contains(c));
        depth == 0
    });
    outside.collect()
}

/// The argument of a call that writes to it: the first, or the one after the pool.
fn written(code: &str) -> Option<&str> {
    let (name, rest) = code.split_once('(')?;
    let (first, others) = argument(rest)?;
    match name.trim() {
        name if WRITERS.contains(&name) => Some(first),
        name if POOL_WRITERS.contains(&name) => argument(others).map(|(second, _)| second),
        _ => None,
    }
}

/// Up to the next comma that is not inside parentheses, and what follows it.
fn argument(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    let (end, _) = text.char_indices().find(|&(_, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    })?;
    Some((&text[..end], &text[end + 1..]))
}

fn balanced(text: &str) -> bool {
    let count = |c: char| text.chars().filter(|&d| d == c).count();
    count('(') == count(')') && count('[') == count(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_left_side_of_an_assignment() {
        assert_eq!(of_text("\tslot->token = 1; //~ 3 ordering").as_deref(), Some("slot->token"));
        assert_eq!(of_text("    p->accounts[i].amount += by;").as_deref(), Some("p->accounts[i].amount"));
        assert_eq!(of_text("  *count = n;").as_deref(), Some("*count"));
        assert_eq!(of_text("    (*journal).count = changes.len() as u64;").as_deref(), None);
    }

    #[test]
    fn the_first_argument_of_a_copy() {
        assert_eq!(of_text("\tmemcpy(m->body, body, sizeof body);").as_deref(), Some("m->body"));
        assert_eq!(of_text("\tPUT(slot(p, head)->number, 0);").as_deref(), None);
        assert_eq!(of_text("\tPUT(p->tail, tail + by);").as_deref(), Some("p->tail"));
        assert_eq!(of_text("pmemobj_memcpy_persist(pop, node->key, key, n);").as_deref(), Some("node->key"));
    }

    #[test]
    fn anything_else_has_no_name() {
        for line in [
            "if (a == b)",
            "for (i = 0; i < n; i++)",
            "int x = 3;",
            "insert(p, key);",
            "",
            "return a = b;",
            "a <= b;",
            "struct slot *slot = &s[i];",
            "TOID(struct root) root = POBJ_ROOT(pool, struct root);",
            "pop = pmemobj_open(path, LAYOUT);",
            "root = create(pop);",
        ] {
            assert_eq!(of_text(line), None, "{line}");
        }
    }
}
