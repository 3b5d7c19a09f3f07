//! Texts as values: so many letters, made of a number, which can be read back from them.

/// Letters that the number is in; 26^13 fits into 64 bits. More letters repeat them.
const DIGITS: u32 = 13;

/// Numbers below this have different texts of so many letters.
pub fn texts(letters: u32) -> u64 {
    26u64.pow(letters.min(DIGITS))
}

/// The text of a number.
pub fn text(letters: u32, number: u64) -> String {
    let mut rest = number % texts(letters);
    let digits: Vec<char> = (0..letters.min(DIGITS))
        .map(|_| {
            let letter = char::from(b'a' + (rest % 26) as u8);
            rest /= 26;
            letter
        })
        .collect();
    digits.iter().cycle().take(letters as usize).collect()
}

/// The number of a text at the beginning of `line`, and what follows it; none: it is not one of so many letters that [`text`] makes.
pub fn number(letters: u32, line: &str) -> Option<(u64, &str)> {
    let (given, rest) = line.split_at_checked(letters as usize)?;
    if !given.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    let digits = given.bytes().take(DIGITS as usize).rev();
    let number = digits.fold(0, |number, byte| number * 26 + u64::from(byte - b'a'));
    (text(letters, number) == given).then_some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_back() {
        for letters in [1, 2, 13, 14, 100] {
            for wanted in [0, 1, 25, texts(letters) - 1, texts(letters) / 3] {
                let made = text(letters, wanted);
                assert_eq!(made.len(), letters as usize);
                assert_eq!(number(letters, &format!("{made};")), Some((wanted, ";")), "{letters} {wanted}");
            }
        }
        assert_eq!(number(3, "ab1"), None);
        assert_eq!(number(3, "ab"), None);
        assert_eq!(number(14, "abcdefghijklmn"), None);
    }
}
