//! Numbers for people.

/// With separators: `1,234,567`.
pub fn separated(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many things of a kind whose plural ends in s: `1 state`, `2 states`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", separated(count), if count == 1 { "" } else { "s" })
}

/// After the crash points that were tested wholly: points that were not finished are no points without a test.
pub fn in_part(points: u64) -> String {
    if points == 0 { String::new() } else { format!(", {} more in part", separated(points)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(separated(0), "0");
        assert_eq!(separated(999), "999");
        assert_eq!(separated(1_234_567), "1,234,567");
        assert_eq!((counted(1, "state"), counted(0, "state")), ("1 state".into(), "0 states".into()));
    }
}
