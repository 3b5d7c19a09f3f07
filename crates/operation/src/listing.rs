//! Listings whose order means nothing: a line for each item, or all items on one line.

/// What an answer lists, and how its items are told apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing<'a> {
    /// Between the items of one line; none: spaces.
    pub separator: Option<&'a str>,
}

/// A line with fewer items may be a pair, such as the smallest and the largest.
const FEWEST: usize = 3;

impl Listing<'_> {
    /// Is an answer a listing, as far as can be told from its form?
    pub fn is_listing(self, answer: Option<&[u8]>) -> bool {
        let Some(line) = answer.map(<[u8]>::trim_ascii_end) else { return false };
        if line.contains(&b'\n') {
            return true;
        }
        let items = self.items(line, false).len();
        items >= FEWEST || self.separator.is_some() && items > 1
    }

    /// Have two answers the same items, in whatever order?
    pub fn same_items(self, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
        let (Some(one), Some(other)) = (one, other) else { return one == other };
        [false, true].into_iter().any(|labelled| self.sorted(one, labelled) == self.sorted(other, labelled))
    }

    /// Does a text have these lines in a row, in whatever order? A banner may be before them, and a farewell after.
    pub fn has_lines(self, text: &[u8], part: &[u8]) -> bool {
        let lines = |text: &[u8], labelled: bool| -> Vec<Vec<Vec<u8>>> {
            lines_of(text.trim_ascii_end()).map(|line| self.line(line, labelled)).collect()
        };
        [false, true].into_iter().any(|labelled| {
            let (there, mut wanted) = (lines(text, labelled), lines(part, labelled));
            wanted.sort_unstable();
            there.windows(wanted.len()).any(|some| {
                let mut some = some.to_vec();
                some.sort_unstable();
                some == wanted
            })
        })
    }

    /// The lines of an answer in an order of their own. Within one of several lines the order counts, unless a separator is known.
    fn sorted(self, answer: &[u8], labelled: bool) -> Vec<Vec<Vec<u8>>> {
        let answer = answer.trim_ascii_end();
        let one_line = !answer.contains(&b'\n');
        let mut lines: Vec<Vec<Vec<u8>>> = lines_of(answer)
            .map(
                |line| if one_line || self.separator.is_some() { self.line(line, labelled) } else { vec![line.into()] },
            )
            .collect();
        lines.sort_unstable();
        lines
    }

    /// The items of a line in an order of their own, what is before them first.
    fn line(self, line: &[u8], labelled: bool) -> Vec<Vec<u8>> {
        let mut items: Vec<Vec<u8>> = self.items(line, labelled).into_iter().map(<[u8]>::to_vec).collect();
        let first = usize::from(labelled && !items.is_empty());
        items[first..].sort_unstable();
        items
    }

    /// The items of a line; if it has a label (`keys: a, b`), that is the first of them.
    fn items(self, line: &[u8], labelled: bool) -> Vec<&[u8]> {
        let line = line.trim_ascii();
        let Some(separator) = self.separator.map(str::as_bytes).filter(|separator| !separator.trim_ascii().is_empty())
        else {
            return line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        };
        let is_open = |byte: &u8| b"[({".contains(byte);
        let end = line.iter().position(is_open).or_else(|| line.iter().position(|byte| *byte == b':'));
        let (label, mut rest) = line.split_at(end.filter(|_| labelled).map_or(0, |end| end + 1));
        if label.last().is_some_and(is_open) {
            rest = rest.strip_suffix(b"]").or(rest.strip_suffix(b")")).or(rest.strip_suffix(b"}")).unwrap_or(rest);
        }
        let mut items = if labelled { vec![label] } else { Vec::new() };
        let separator = separator.trim_ascii();
        while let Some(at) = rest.windows(separator.len()).position(|some| some == separator) {
            items.push(rest[..at].trim_ascii());
            rest = &rest[at + separator.len()..];
        }
        items.push(rest.trim_ascii());
        items.retain(|item| labelled || !item.is_empty());
        items
    }
}

fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: Listing<'_> = Listing { separator: None };
    const COMMAS: Listing<'_> = Listing { separator: Some(", ") };

    #[test]
    fn listings_are_equal_in_any_order() {
        let same = |one: &[u8], other: &[u8]| LINES.same_items(Some(one), Some(other));
        assert!(same(b"1 a\n2 b\n", b"2 b\n1 a\n") && same(b"all 1 2\n", b"all 2 1\n"));
        assert!(!same(b"1 a\n2 b\n", b"1 b\n2 a\n") && !same(b"1\n1\n2\n", b"1\n2\n2\n") && !same(b"1 2\n", b"1\n2\n"));
        assert!(LINES.same_items(None, None) && !LINES.same_items(None, Some(b"")));
        let has = |text: &[u8], part: &[u8]| LINES.has_lines(text, part);
        assert!(has(b"hi\n2\n1\nbye\n", b"1\n2\n") && !has(b"1\n0\n2\n", b"1\n2\n") && !has(b"1\n", b"1\n1\n"));
    }

    #[test]
    fn items_of_one_line_are_told_apart_by_their_separator() {
        let same = |one: &[u8], other: &[u8]| COMMAS.same_items(Some(one), Some(other));
        assert!(same(b"a 1, b 2\n", b"b 2, a 1\n") && !same(b"a 1, b 2\n", b"a 2, b 1\n"));
        assert!(same(b"keys: a 1, b 2\n", b"keys: b 2, a 1\n") && !same(b"keys: a 1, b 2\n", b"keys: a 2, b 1\n"));
        assert!(same(b"set [a, b, c]\n", b"set [c, a, b]\n") && !same(b"set [a, b]\n", b"map [b, a]\n"));
        assert!(same(b"1: a, b\n2: c\n", b"2: c\n1: b, a\n") && !same(b"1: a, b\n2: c\n", b"1: a, c\n2: b\n"));
        assert!(!same(b"a, b\n", b"a, b, b\n") && same(b"a: 1, b: 2\n", b"b: 2, a: 1\n"));
        assert!(COMMAS.has_lines(b"hi\nok\nkeys: b, a\n", b"ok\nkeys: a, b\n"));
    }

    #[test]
    fn what_looks_like_a_listing() {
        let looks = |listing: Listing<'_>, answer: &[u8]| listing.is_listing(Some(answer));
        assert!(looks(LINES, b"1\n2\n") && looks(LINES, b"all 1 2\n"));
        assert!(!looks(LINES, b"3 7\n") && !looks(LINES, b"3\n") && !LINES.is_listing(None));
        assert!(looks(COMMAS, b"3, 7\n") && !looks(COMMAS, b"one two three\n"));
    }
}
