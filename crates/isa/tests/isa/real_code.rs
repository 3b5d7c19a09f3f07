//! All code of this test's own executable and of its libraries.

use crate::judge::{Verdict, compare, is_left_out};
use std::os::unix::fs::FileExt;

#[test]
fn every_instruction_of_this_process_is_known() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut agreed = 0;
    for line in maps.lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [range, "r-xp", offset, _, _, path] = fields[..] else { continue };
        if !path.starts_with('/') {
            continue;
        }
        let (start, end) = range.split_once('-').unwrap();
        let hex = |text| u64::from_str_radix(text, 16).unwrap();
        let mut code = vec![0; (hex(end) - hex(start)) as usize];
        let read = std::fs::File::open(path).unwrap().read_at(&mut code, hex(offset)).unwrap();
        code.truncate(read);
        agreed += sweep(path, &code);
    }
    assert!(agreed > 100_000, "only {agreed} instructions met");
}

/// Linear sweep; what does not decode is data or padding.
fn sweep(path: &str, code: &[u8]) -> usize {
    let (mut at, mut agreed) = (0, 0);
    while at + 16 <= code.len() {
        let bytes = &code[at..at + 16];
        at += match compare(bytes) {
            Verdict::Agreed => {
                agreed += 1;
                isa::scan::scan(bytes).map_or(1, |scan| scan.len as usize)
            }
            Verdict::Invalid => 1,
            Verdict::Unknown(instruction) => {
                let code = instruction.code();
                assert!(is_left_out(&instruction, bytes), "{path}+{at:#x}: {code:?} is not known: {bytes:02x?}");
                instruction.len()
            }
        };
    }
    agreed
}
