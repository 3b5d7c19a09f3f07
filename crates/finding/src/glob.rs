//! Patterns over paths and names: `*` is any text, `/` included; `?` is any one character.

/// Whether all of `text` matches.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where the last `*` stood, and how much it has swallowed so far: the only place to go back to.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((at, swallowed)) => {
                    *swallowed += 1;
                    (p, t) = (*at + 1, *swallowed);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks() {
        assert!(matches("*/btree_map.c", "/usr/share/doc/btree_map.c"));
        assert!(matches("lib?mem*.so*", "libpmemobj.so.1"));
        assert!(matches("*a*b", "xaaybzb"));
        assert!(!matches("*.c", "x.cpp"));
        assert!(!matches("a", "ab"));
        assert!(matches("*", ""));
    }
}
