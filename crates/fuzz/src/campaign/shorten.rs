//! Makes an input shorter as long as it still shows the same (Zeller and Hildebrandt: "Simplifying and isolating failure-inducing
//! input", 2002): halves of it are left out first, then smaller and smaller parts.

use std::ops::Range;

/// Leaves out parts of `input` while `shows` says that the rest still does; asks at most `tries` times.
pub fn shorten(
    input: &[u8],
    parts: &dyn Fn(&[u8]) -> Vec<Range<usize>>,
    tries: usize,
    shows: &mut dyn FnMut(&[u8]) -> bool,
) -> Vec<u8> {
    let mut best = input.to_vec();
    let mut left = tries;
    let mut pieces = 2;
    loop {
        let ranges = parts(&best);
        if ranges.len() < 2 || left == 0 {
            return best;
        }
        let size = ranges.len().div_ceil(pieces);
        let mut shorter = None;
        for group in ranges.chunks(size) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            if left == 0 {
                break;
            }
            let mut candidate = best.clone();
            candidate.drain(first.start..last.end);
            if candidate.is_empty() {
                continue;
            }
            left -= 1;
            if shows(&candidate) {
                shorter = Some(candidate);
                break;
            }
        }
        match shorter {
            Some(shorter) => best = shorter,
            None if size == 1 => return best,
            None => pieces = (pieces * 2).min(ranges.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_is_left() {
        let bytes = |input: &[u8]| (0..input.len()).map(|at| at..at + 1).collect();
        let mut asked = 0;
        let shortest = shorten(b"abcXdefghYijk", &bytes, 1000, &mut |input| {
            asked += 1;
            input.contains(&b'X') && input.contains(&b'Y')
        });
        assert_eq!(shortest, b"XY");
        assert!(asked < 100);
        assert_eq!(shorten(b"abc", &bytes, 0, &mut |_| true), b"abc", "no tries, no change");
    }
}
