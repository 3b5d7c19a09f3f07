//! The content of files. Writes put a *pattern* into a file that depends on a seed and on the place in the file, so that a walk can say
//! for every word which write it is from and whether it is in the right place, in readable text:
//!
//! ```text
//!   seed3:1024,zero:3072            1 KiB of write 3, then zeros
//!   seed3:1016,x0a1b…:8,seed4:…     a word that nobody wrote as a whole
//! ```
//! Nothing is lost: the text can be turned back into the bytes.

use std::fmt::Write;
use std::str::FromStr;

/// Tells writes apart. From 1 to [`SEEDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed(pub u8);

pub const SEEDS: u8 = 255;
const WORD: usize = 8;

/// The word of a pattern, by its number in the file: the last step of SplitMix64 (Steele, Lea, Flood 2014).
fn word(seed: Seed, number: u64) -> [u8; WORD] {
    let mut z = (u64::from(seed.0) << 48 ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).to_le_bytes()
}

/// What a write with this seed puts at `offset`.
pub fn pattern(seed: Seed, offset: u64, len: usize) -> Vec<u8> {
    let byte = |at: u64| word(seed, at / WORD as u64)[(at % WORD as u64) as usize];
    (offset..offset + len as u64).map(byte).collect()
}

/// The bytes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Content(pub Vec<u8>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no content of a file")]
pub struct BadContent(String);

#[derive(PartialEq, Eq)]
enum Run {
    Zero,
    Pattern(Seed),
    Raw,
}

impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut last: Option<(Run, usize, String)> = None;
        let mut text = String::new();
        let mut flush = |run: Option<(Run, usize, String)>| {
            let Some((run, len, hex)) = run else { return Ok(()) };
            if !text.is_empty() {
                text.push(',');
            }
            match run {
                Run::Zero => write!(text, "zero:{len}"),
                Run::Pattern(seed) => write!(text, "seed{}:{len}", seed.0),
                Run::Raw => write!(text, "x{hex}:{len}"),
            }
        };
        let mut likely = Seed(1);
        for (number, bytes) in self.0.chunks(WORD).enumerate() {
            let run = run_of(bytes, number as u64, &mut likely);
            let hex: String = match run {
                Run::Raw => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                _ => String::new(),
            };
            match &mut last {
                Some((same, len, all)) if *same == run => {
                    *len += bytes.len();
                    all.push_str(&hex);
                }
                _ => flush(last.replace((run, bytes.len(), hex)))?,
            }
        }
        flush(last)?;
        f.write_str(if text.is_empty() { "none" } else { &text })
    }
}

fn run_of(bytes: &[u8], number: u64, likely: &mut Seed) -> Run {
    if bytes.iter().all(|&byte| byte == 0) {
        return Run::Zero;
    }
    let is = |seed: &Seed| word(*seed, number)[..bytes.len()] == *bytes;
    let seed = Some(*likely).filter(is).or_else(|| (1..=SEEDS).map(Seed).find(is));
    match seed {
        Some(seed) => {
            *likely = seed;
            Run::Pattern(seed)
        }
        None => Run::Raw,
    }
}

/// Longer contents are not read: a number in a damaged line must not take all memory.
const MOST_BYTES: usize = 256 << 20;

impl FromStr for Content {
    type Err = BadContent;

    fn from_str(text: &str) -> Result<Content, BadContent> {
        let bad = || BadContent(text.to_owned());
        let mut bytes = Vec::new();
        for run in text.split(',').filter(|run| *run != "none") {
            let (what, len) = run.rsplit_once(':').ok_or_else(bad)?;
            let len: usize = len.parse().map_err(|_| bad())?;
            if len > MOST_BYTES - bytes.len() {
                return Err(bad());
            }
            if what == "zero" {
                bytes.resize(bytes.len() + len, 0);
            } else if let Some(seed) = what.strip_prefix("seed") {
                let seed = Seed(seed.parse().map_err(|_| bad())?);
                bytes.extend(pattern(seed, bytes.len() as u64, len));
            } else {
                let hex = what.strip_prefix('x').filter(|hex| hex.len() == 2 * len).ok_or_else(bad)?;
                for at in 0..len {
                    let digits = hex.get(2 * at..2 * at + 2).ok_or_else(bad)?;
                    bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
                }
            }
        }
        Ok(Content(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_gives_the_bytes_back() {
        let mut bytes = pattern(Seed(3), 0, 1024);
        bytes.extend([0; 64]);
        bytes.extend(pattern(Seed(200), 1088, 37));
        bytes[500..505].copy_from_slice(&pattern(Seed(4), 500, 5));
        let text = Content(bytes.clone()).to_string();
        assert_eq!(text.parse(), Ok(Content(bytes)));
        assert!(text.starts_with("seed3:496,x") && text.contains(",zero:64,seed200:37"), "{text}");
        assert_eq!("none".parse(), Ok(Content::default()));
        assert_eq!(Content::default().to_string(), "none");
        assert!("seed3".parse::<Content>().is_err() && "x12:4".parse::<Content>().is_err());
    }

    #[test]
    fn a_pattern_knows_its_place() {
        let moved = pattern(Seed(3), 8, 8);
        assert_ne!(moved, pattern(Seed(3), 0, 8));
        assert_ne!(pattern(Seed(1), 0, 8), pattern(Seed(2), 0, 8));
        assert_eq!(pattern(Seed(3), 5, 3), pattern(Seed(3), 0, 8)[5..]);
    }
}
