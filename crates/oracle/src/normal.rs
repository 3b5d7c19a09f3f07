//! Lines of output without what differs from run to run.

/// The longest line that a key holds.
const LONGEST: usize = 120;

/// Numbers, decimal and hexadecimal, become `#`; blanks shrink; long lines are cut.
pub fn normal(line: &str) -> String {
    let mut result = String::new();
    let mut rest = line.trim();
    let mut inside_word = false;
    while let Some(first) = rest.chars().next() {
        if result.len() >= LONGEST {
            break;
        }
        let number = if inside_word { 0 } else { number_length(rest) };
        if number > 0 {
            result.push('#');
            rest = &rest[number..];
            inside_word = true;
        } else if first.is_whitespace() {
            result.push(' ');
            rest = rest.trim_start();
            inside_word = false;
        } else {
            result.push(first);
            rest = &rest[first.len_utf8()..];
            inside_word = first.is_alphanumeric() || first == '_';
        }
    }
    result
}

/// Bytes of the number at the start of a word: `0x…`, decimal digits, or a bare hexadecimal number with a digit in it.
/// A name with digits in it, such as `libpmem2`, is no number.
fn number_length(text: &str) -> usize {
    let word = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let word = &text[..word];
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let prefixed = digits.len() != word.len();
    let hexadecimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hexadecimal && (prefixed || digits.bytes().any(|byte| byte.is_ascii_digit())) {
        return word.len();
    }
    // "12ms", "3rd"
    word.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_and_names_stay() {
        assert_eq!(normal("key 17 at 0x7fFF, took 12ms"), "key # at #, took #ms");
        assert_eq!(normal("libpmem2: map_get2() bad\t face deadbeef00"), "libpmem2: map_get2() bad face #");
        assert_eq!(normal("==4711==ERROR kv.c:12:7"), "==#==ERROR kv.c:#:#");
        assert_eq!(normal("-5 < 1.5"), "-# < #.#");
        assert_eq!(normal("  größe 3 é\n"), "größe # é");
    }

    #[test]
    fn long_lines_are_cut() {
        assert!(normal(&"word ".repeat(100)).len() <= LONGEST + 4);
    }
}
