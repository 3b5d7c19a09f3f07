//! FP0302, FP0303, FP0304: warnings.

use crate::program::Program;

#[test]
fn fp0302_the_third_value_of_the_same_bytes() {
    let mut program = Program::new();
    program.store(1, 0).store(1, 0).store(1, 0).persist(2, 0).finds(&[("FP0302", 1)]);
    // Zeroed, then filled in.
    Program::new().store(1, 0).store(2, 0).persist(3, 0).is_clean();
    // Durable each time.
    let mut program = Program::new();
    for _ in 0..3 {
        program.store(1, 0).persist(2, 0);
    }
    program.is_clean();
    // Different bytes of a line.
    Program::new().store(1, 0).store(1, 8).store(1, 16).persist(2, 0).is_clean();
}

#[test]
fn fp0302_a_long_loop_is_found_too() {
    let mut program = Program::new();
    for _ in 0..1000 {
        program.store(1, 0);
    }
    program.persist(2, 0).finds(&[("FP0302", 1)]);
}

#[test]
fn fp0302_transient_data_is_reported_as_such() {
    Program::new().store(1, 0).store(1, 0).store(1, 0).finds(&[("FP0301", 1)]);
}

#[test]
fn fp0303_two_fields_of_a_line_are_flushed_one_by_one() {
    Program::new().store(1, 0).store(2, 8).clwb(3, 0).clwb(4, 8).sfence(5).finds(&[("FP0303", 3)]);
    Program::new().store(1, 0).store(2, 8).clwb(3, 0).sfence(4).is_clean();
    // One store, flushed twice, is certain waste.
    Program::new().store(1, 0).clwb(3, 0).clwb(4, 8).sfence(5).finds(&[("FP0201", 4)]);
}

#[test]
fn fp0304_lines_flushed_by_different_code() {
    let mut program = Program::new();
    program.store(1, 0).clwb(2, 0).store(3, 64).clwb(4, 64).sfence(5).finds(&[("FP0304", 5)]);
    let mut repaired = Program::new();
    repaired.store(1, 0).persist(2, 0).store(4, 64).persist(5, 64).is_clean();
}

#[test]
fn fp0304_the_lines_of_one_object_are_one_request() {
    let mut program = Program::new();
    program.store(1, 0).store(1, 64).clwb(2, 0).clwb(2, 64).sfence(3).is_clean();
}
