//! Marks of operations in a program's own code: `nopl disp32(%rax)` with displacements that nobody else uses. The same bytes
//! are in `marks/fencepost.h` and in the crate `fencepost-marks`.

/// An operation begins (`fpOB`).
pub const BEGIN: [u8; 7] = [0x0f, 0x1f, 0x80, b'f', b'p', b'O', b'B'];
/// It is over (`fpOE`).
pub const END: [u8; 7] = [0x0f, 0x1f, 0x80, b'f', b'p', b'O', b'E'];
