//! Gives a parser many altered files.

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::mutate::Mutator;

/// For each parser, if `FENCEPOST_FUZZ_INPUTS` names no other number: what the test suite has time for.
const INPUTS: u64 = 2_000;

fn variable<T: FromStr>(name: &str) -> Option<T> {
    env::var(name).ok()?.parse().ok()
}

/// The files of a corpus, by name. There must be one.
pub fn corpus(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.iter().map(|path| fs::read(path).expect("a file")).collect()
}

/// Panics if `parse` does: the message names the input, which is kept. The seeds come first, as they are. With `FENCEPOST_FUZZ_SECONDS` it goes on
/// with further inputs for that long.
pub fn hammer(name: &str, seeds: &[Vec<u8>], parse: &dyn Fn(&[u8])) {
    let inputs = variable("FENCEPOST_FUZZ_INPUTS").unwrap_or(INPUTS);
    let time = Duration::from_secs(variable("FENCEPOST_FUZZ_SECONDS").unwrap_or(0));
    let begin = Instant::now();
    for number in (0..).take_while(|number| *number < inputs || begin.elapsed() < time) {
        let mut mutator = Mutator::new(name, number);
        let input = match seeds.get(number as usize) {
            Some(seed) => seed.clone(),
            None => {
                let (seed, other) = (mutator.below(seeds.len()), mutator.below(seeds.len()));
                mutator.mutate(&seeds[seed], &seeds[other])
            }
        };
        if catch_unwind(AssertUnwindSafe(|| parse(&input))).is_err() {
            let kept = env::temp_dir().join(format!("fencepost-{name}-{number}"));
            let _ = fs::write(&kept, &input);
            panic!(
                "{name}: input {number} makes the parser panic; it is in {}. Repair the parser, and put the input into the corpus",
                kept.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parser_that_panics_is_noticed() {
        let seeds = [b"length 10 of 20".to_vec(), b"length 7 of 7".to_vec()];
        let brittle = |input: &[u8]| {
            let text = String::from_utf8_lossy(input);
            let numbers: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
            if let [part, whole] = numbers[..] {
                assert!(part <= whole);
            }
        };
        assert!(catch_unwind(|| hammer("brittle", &seeds, &brittle)).is_err());
        hammer("sturdy", &seeds, &|input| drop(String::from_utf8_lossy(input)));
    }
}
