//! FP04xx: PMDK transactions.

use crate::program::{BASE, Program};

const OBJECT: u64 = 0x1000;

fn begin(program: &mut Program) -> &mut Program {
    program.call(10, "pmemobj_tx_begin", &[BASE, 0]).returns("pmemobj_tx_begin", 0)
}

/// The object's offset, then a range of it.
fn add(program: &mut Program, pc: u64, start: u64, len: u64) -> &mut Program {
    program.call(pc, "pmemobj_tx_add_range", &[0xabc, OBJECT, start, len]).returns("pmemobj_tx_add_range", 0)
}

/// As libpmemobj does it: a header with size and type, then the object.
fn allocate(program: &mut Program, pc: u64, block: u64, size: u64, type_num: u64) -> &mut Program {
    let mut header = (size + 16).to_le_bytes().to_vec();
    header.extend(type_num.to_le_bytes());
    program.call(pc, "pmemobj_tx_alloc", &[size, type_num]).bytes(pc + 1, block, &header);
    program.persist(pc + 2, block).returns("pmemobj_tx_alloc", 0xabc)
}

fn commit(program: &mut Program) -> &mut Program {
    program.call(90, "pmemobj_tx_commit", &[]).persist(91, OBJECT).call(95, "pmemobj_tx_end", &[])
}

#[test]
fn fp0401_added_twice() {
    let mut program = Program::new();
    add(add(begin(&mut program), 20, 0, 64), 21, 0, 64).store(30, OBJECT);
    commit(&mut program).finds(&[("FP0401", 21)]);
}

#[test]
fn fp0401_a_part_was_added_by_address() {
    let mut program = Program::new();
    add(begin(&mut program), 20, 0, 64);
    program.call(21, "pmemobj_tx_add_range_direct", &[BASE + OBJECT + 56, 16]).store(30, OBJECT);
    commit(&mut program).finds(&[("FP0401", 21)]);
}

#[test]
fn fp0401_added_after_it_was_allocated() {
    let mut program = Program::new();
    allocate(begin(&mut program), 20, OBJECT - 16, 48, 7);
    add(&mut program, 25, 0, 8).store(30, OBJECT);
    commit(&mut program).finds(&[("FP0401", 25)]);
}

#[test]
fn fp0401_the_next_transaction_logs_anew() {
    let mut program = Program::new();
    for _ in 0..2 {
        add(begin(&mut program), 20, 0, 8).store(30, OBJECT);
        commit(&mut program);
    }
    program.is_clean();
}

#[test]
fn fp0401_without_a_snapshot_nothing_is_logged() {
    let mut program = Program::new();
    add(begin(&mut program), 20, 0, 64);
    program.call(21, "pmemobj_tx_xadd_range", &[0xabc, OBJECT, 0, 64, 1 << 2]).store(30, OBJECT);
    commit(&mut program).is_clean();
}

#[test]
fn fp0402_neither_added_nor_allocated() {
    let mut program = Program::new();
    begin(&mut program).store(30, OBJECT);
    commit(&mut program).finds(&[("FP0402", 30)]);

    let mut repaired = Program::new();
    add(begin(&mut repaired), 20, 0, 8).store(30, OBJECT);
    commit(&mut repaired).is_clean();
}

#[test]
fn fp0402_half_of_the_store_is_covered() {
    let mut program = Program::new();
    add(begin(&mut program), 20, 0, 4).store(30, OBJECT);
    commit(&mut program).finds(&[("FP0402", 30)]);
}

#[test]
fn fp0402_a_new_object_may_be_filled_in() {
    let mut program = Program::new();
    allocate(begin(&mut program), 20, OBJECT - 16, 48, 7).store(30, OBJECT);
    commit(&mut program).is_clean();
}

#[test]
fn fp0402_other_threads_and_later_stores_are_in_no_transaction() {
    let mut program = Program::new();
    add(begin(&mut program), 20, 0, 8).store(30, OBJECT);
    program.thread(1).store(40, OBJECT + 64).persist(41, OBJECT + 64).thread(0);
    commit(&mut program).store(50, OBJECT).persist(51, OBJECT).is_clean();
}

#[test]
fn fp0402_an_inner_transaction_is_part_of_the_outer() {
    let mut program = Program::new();
    add(begin(&mut program), 20, 0, 8);
    begin(&mut program).store(30, OBJECT).call(31, "pmemobj_tx_commit", &[]).call(32, "pmemobj_tx_end", &[]);
    program.store(33, OBJECT + 8);
    commit(&mut program).finds(&[("FP0402", 33)]);
}

#[test]
fn fp0402_an_allocation_that_was_not_recognised_silences_the_transaction() {
    let mut program = Program::new();
    begin(&mut program).call(20, "pmemobj_tx_alloc", &[48, 7]).returns("pmemobj_tx_alloc", 0xabc).store(30, OBJECT);
    commit(&mut program).is_clean();
}

#[test]
fn fp0403_a_chosen_type_outside_any_transaction() {
    let mut program = Program::new();
    program.settings.parse_setting("FP0403.types=3,7").unwrap();
    allocate(begin(&mut program), 20, OBJECT - 16, 48, 7);
    commit(&mut program);
    program.store(50, OBJECT + 8).persist(51, OBJECT);
    let found = program.found();
    assert_eq!(found, [("FP0201".to_owned(), 91), ("FP0403".to_owned(), 50)]);
}

#[test]
fn fp0403_other_types_and_freed_objects_do_not_count() {
    for (types, free) in [("FP0403.types=3", false), ("FP0403.types=7", true)] {
        let mut program = Program::new();
        program.settings.parse_setting(types).unwrap();
        allocate(begin(&mut program), 20, OBJECT - 16, 48, 7).store(30, OBJECT);
        if free {
            program.call(31, "pmemobj_tx_free", &[0xabc, OBJECT]);
        }
        commit(&mut program);
        program.store(50, OBJECT + 8).persist(51, OBJECT).is_clean();
    }
}
