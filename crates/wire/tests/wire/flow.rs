//! The first word of an entry in a `FLOW` record.

use wire::record::flow;

/// As the processor writes it: 32 bits, extended by their sign.
fn written(block: u32) -> u64 {
    flow::whole(block) as i32 as i64 as u64
}

#[test]
fn a_whole_entry_names_its_block() {
    for block in [1, 2, 0xffff, 0x7fff_ffff] {
        assert_eq!(flow::read(written(block)), Some((block, None)));
    }
}

#[test]
fn a_cut_entry_says_how_many_instructions_ran() {
    for instructions in [1, 95] {
        let word = written(7) & 0xffff_ffff | u64::from(flow::part(instructions)) << 32;
        assert_eq!(flow::read(word), Some((7, Some(instructions))));
    }
}

#[test]
fn other_words_are_no_entries() {
    assert_eq!(flow::read(0), None);
    assert_eq!(flow::read(0x0000_7fff_1234_5678), None);
}
