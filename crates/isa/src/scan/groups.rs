//! Members of the opcode groups by `/digit` (SDM vol. 2, table A-6 "Opcode extensions"): /0 to /7 with memory,
//! then /0 to /7 with a register.

use super::Class;
use super::op::{Group, Imm, Op};

type Members = [Op; 16];

const NONE: Op = Op::unknown();
const PLAIN: Op = Op::plain().m();
const GS: Op = Op::class(Class::GsAccess).m();
const FAR: Op = Op::class(Class::Unsupported).m().reads();

/// A register is no different from memory.
const fn both(members: [Op; 8]) -> Members {
    forms(members, members)
}

const fn forms(memory: [Op; 8], register: [Op; 8]) -> Members {
    let mut members = [NONE; 16];
    let mut digit = 0;
    while digit < 8 {
        members[digit] = memory[digit];
        members[8 + digit] = register[digit];
        digit += 1;
    }
    members
}

/// add, or, adc, sbb, and, sub, xor, cmp.
const fn arithmetic(imm: Imm) -> Members {
    let kills = PLAIN.imm(imm).kills().lockable();
    let reads = PLAIN.imm(imm).reads().lockable();
    both([kills, kills, reads, reads, kills, kills, kills, PLAIN.imm(imm).kills()])
}

/// rol, ror, rcl, rcr, shl, shr, sal, sar. Rotates write CF and OF alone.
const fn shift(shifts: Op, imm: Imm) -> Members {
    let rotate = PLAIN.imm(imm).mixed();
    let through_carry = PLAIN.imm(imm).reads();
    both([rotate, rotate, through_carry, through_carry, shifts, shifts, shifts, shifts])
}

/// test, test, not, neg, mul, imul, div, idiv.
const fn unary(imm: Imm) -> Members {
    let test = PLAIN.imm(imm).kills();
    both([
        test,
        test,
        PLAIN.lockable(),
        PLAIN.kills().lockable(),
        PLAIN.kills(),
        PLAIN.kills(),
        // Undefined on paper, left alone by some processors.
        PLAIN.mixed(),
        PLAIN.mixed(),
    ])
}

/// mov; `/7` with the register form F8 is xabort or xbegin.
const fn mov(imm: Imm) -> Members {
    let special = Op::special().m();
    let memory = [PLAIN.imm(imm), NONE, NONE, NONE, NONE, NONE, NONE, NONE];
    forms(memory, [PLAIN.imm(imm), NONE, NONE, NONE, NONE, NONE, NONE, special])
}

pub(super) static GROUPS: [Members; 32] = {
    let mut groups = [[NONE; 16]; 32];
    groups[Group::Arithmetic8 as usize] = arithmetic(Imm::Imm8);
    groups[Group::Arithmetic32 as usize] = arithmetic(Imm::Imm32);
    groups[Group::Xchg as usize] = forms([Op::class(Class::Locked).m().lockable(); 8], [PLAIN; 8]);
    groups[Group::MovFromSeg as usize] = both([PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, GS, NONE, NONE]);
    groups[Group::MovToSeg as usize] = both([PLAIN, NONE, PLAIN, PLAIN, PLAIN, GS, NONE, NONE]);
    // Anything but /0 is XOP, or nothing.
    groups[Group::Pop as usize] = both([PLAIN, NONE, NONE, NONE, NONE, NONE, NONE, NONE]);
    groups[Group::ShiftImm as usize] = shift(PLAIN.imm(Imm::Imm8).kills().counted(), Imm::Imm8);
    groups[Group::ShiftOne as usize] = shift(PLAIN.kills(), Imm::None);
    groups[Group::ShiftCl as usize] = shift(PLAIN.mixed(), Imm::None);
    groups[Group::MovImm8 as usize] = mov(Imm::Imm8);
    groups[Group::MovImm32 as usize] = mov(Imm::Imm32);
    // fcmov reads flags; fucomi, fcomi and their popping forms write some.
    let (fcmov, fcomi) = (PLAIN.reads(), PLAIN.mixed());
    groups[Group::X87Da as usize] = forms([PLAIN; 8], [fcmov, fcmov, fcmov, fcmov, PLAIN, PLAIN, PLAIN, PLAIN]);
    groups[Group::X87Db as usize] = forms([PLAIN; 8], [fcmov, fcmov, fcmov, fcmov, PLAIN, fcomi, fcomi, PLAIN]);
    groups[Group::X87Df as usize] = forms([PLAIN; 8], [PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, fcomi, fcomi, PLAIN]);
    groups[Group::Unary8 as usize] = unary(Imm::Imm8);
    groups[Group::Unary32 as usize] = unary(Imm::Imm32);
    // inc and dec keep CF.
    let step = PLAIN.mixed().lockable();
    let (call, jmp) = (Op::class(Class::CallInd).m(), Op::class(Class::JmpInd).m());
    groups[Group::IncDec as usize] = both([step, step, NONE, NONE, NONE, NONE, NONE, NONE]);
    groups[Group::IncDecBranchPush as usize] = both([step, step, call, FAR, jmp, FAR, PLAIN, NONE]);
    // bt, bts, btr, btc.
    let bit = PLAIN.imm(Imm::Imm8).mixed();
    let change = bit.lockable();
    groups[Group::BitImm as usize] = both([NONE, NONE, NONE, NONE, bit, change, change, change]);
    groups
};
