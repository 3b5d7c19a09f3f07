//! What instructions compute, as expressions. [`table`] maps each mnemonic to an operation; the other files implement the operations.

mod integer;
mod lanes;
mod masks;
mod moves;
mod shifts;
mod shuffle;
mod table;
mod vector;

pub use table::{Meaning, meaning};

use crate::frame::{Concrete, Done, InstructionFrame};

/// Executes the instruction of the frame. On error some results may have been written: the caller makes all of them concrete.
pub fn execute(frame: &mut InstructionFrame<'_>) -> Done {
    use Meaning as M;
    match meaning(frame.instruction.mnemonic()) {
        M::Arithmetic(what) => integer::arithmetic(frame, what),
        M::Unary(what) => integer::unary(frame, what),
        M::Multiply { signed } => integer::multiply(frame, signed),
        M::MultiplyNoFlags => integer::mulx(frame),
        M::Divide { signed } => integer::divide(frame, signed),
        M::Count(what) => integer::count(frame, what),
        M::BitTest(what) => integer::bit_test(frame, what),
        M::Bmi(what) => integer::bmi(frame, what),
        M::Convert => integer::convert(frame),
        M::Lea => integer::lea(frame),
        M::SetCondition => integer::set_condition(frame),
        M::CompareExchange => integer::compare_exchange(frame),
        M::ExchangeAdd => integer::exchange_add(frame),
        M::CarryFlag(what) => integer::carry_flag(frame, what),
        M::FlagsToAh => integer::flags_to_ah(frame),
        M::Crc32 => integer::crc32(frame),
        M::Shift(what) => shifts::shift(frame, what),
        M::DoubleShift { left } => shifts::double(frame, left),
        M::ShiftNoFlags(what) => shifts::without_flags(frame, what),
        M::Move => moves::plain(frame),
        M::MoveSign => moves::sign(frame),
        M::MoveCondition => moves::condition(frame),
        M::Exchange => moves::exchange(frame),
        M::Reverse => moves::reverse(frame),
        M::MoveHalf { high } => moves::half(frame, high),
        M::Lanes(what, lane) => lanes::binary(frame, what, lane),
        M::LaneUnary(what, lane) => lanes::unary(frame, what, lane),
        M::LaneShift(what, lane) => lanes::shift(frame, what, lane),
        M::Ternary(lane) => lanes::ternary(frame, lane),
        M::Compare(what, lane) => lanes::compare(frame, what, lane),
        M::TestToMask { set, lane } => masks::test_to_mask(frame, set, lane),
        M::CompareToMask { signed, lane } => masks::compare_to_mask(frame, signed, lane),
        M::Mask(what, bits) => masks::binary(frame, what, bits),
        M::MaskTest { with_or, bits } => masks::test(frame, with_or, bits),
        M::MaskNot(bits) => masks::not(frame, bits),
        M::MaskShift { left, bits } => masks::shift(frame, left, bits),
        M::MaskUnpack(bits) => masks::unpack(frame, bits),
        M::MoveMask(lane) => vector::move_mask(frame, lane),
        M::VectorTest => vector::test(frame),
        M::Blend => vector::blend_by_sign(frame),
        M::ShuffleBytes => vector::shuffle_bytes(frame),
        M::Extend { signed, from, to } => vector::extend(frame, signed, from, to),
        M::Insert(lane) => vector::insert(frame, lane),
        M::Extract(lane) => vector::extract(frame, lane),
        M::Shuffle(what) => shuffle::shuffle(frame, what),
        M::ZeroUpper { all } => {
            vector::zero_upper(frame, all);
            Ok(())
        }
        M::Nothing => Ok(()),
        M::None => Err(Concrete::NotCovered),
    }
}
