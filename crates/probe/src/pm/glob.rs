//! `--pm` patterns, as defined in the recorder's contract: `*` matches any characters (also `/`), `?` matches one.

use crate::ring;

/// Does a `--pm` pattern name this path?
pub fn wants(path: &[u8]) -> bool {
    let control = ring::control();
    control.globs[..control.glob_count as usize].iter().any(|text| {
        let start = text.start as usize;
        matches(&control.text[start..start + text.len as usize], path)
    })
}

/// Linear in practice: on a mismatch only the last `*` takes one more character.
pub fn matches(glob: &[u8], path: &[u8]) -> bool {
    let (mut g, mut p) = (0, 0);
    let mut star = None;
    while p < path.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g, p));
                g += 1;
            }
            Some(c) if *c == b'?' || *c == path[p] => {
                g += 1;
                p += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    g = at + 1;
                    p = taken + 1;
                    star = Some((at, taken + 1));
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == b'*')
}
