//! Alters files.

/// Makes changes that follow from its seed.
#[derive(Clone, Debug)]
pub struct Mutator(u64);

/// Where numbers turn over, and what text formats are made of.
const TOKENS: [&[u8]; 24] = [
    b"0",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"\"",
    b"'",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"=",
    b":",
    b",",
    b"\n",
    b"\0",
    b" ",
    b"null",
    b"\\u0000",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x80",
    "é".as_bytes(),
    b"#x",
    b"..",
];

impl Mutator {
    /// FNV-1a over the name, so that parsers do not get the same changes.
    pub fn new(name: &str, number: u64) -> Mutator {
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Mutator(hash ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// A range of these bytes, none too long.
    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        if len == 0 {
            return 0..0;
        }
        let start = self.below(len);
        let longest = (len - start).min(64);
        start..start + 1 + self.below(longest)
    }

    /// One to eight changes; `other` lends parts.
    pub fn mutate(&mut self, bytes: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..1 + self.below(8) {
            let at = self.below(bytes.len() + 1);
            match self.below(8) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 if at < bytes.len() => bytes[at] = self.next() as u8,
                2 => bytes.insert(at, self.next() as u8),
                3 => drop(bytes.drain(self.range(bytes.len()))),
                4 => {
                    let part = bytes[self.range(bytes.len())].to_vec();
                    bytes.splice(at..at, part);
                }
                5 => {
                    let part = other[self.range(other.len())].to_vec();
                    bytes.splice(at..at, part);
                }
                6 => bytes.truncate(at),
                _ => {
                    let token = TOKENS[self.below(TOKENS.len())];
                    let end = if self.below(2) == 0 { at } else { (at + token.len()).min(bytes.len()) };
                    bytes.splice(at..end, token.iter().copied());
                }
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_follow_from_the_seed() {
        let altered = |number| Mutator::new("it", number).mutate(b"[one]\nkey = 7\n", b"other");
        let all: std::collections::BTreeSet<Vec<u8>> = (0..200).map(altered).collect();
        assert!(all.len() > 150, "only {} different inputs", all.len());
        assert_eq!(altered(7), altered(7));
    }

    #[test]
    fn nothing_can_be_altered_too() {
        for number in 0..500 {
            Mutator::new("nothing", number).mutate(b"", b"");
        }
    }
}
