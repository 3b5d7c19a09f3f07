//! The opcode maps: one row per family. A `/digit` is resolved by `groups`,
//! what depends on more than that by `special`; which opcodes of the `0F`, VEX and EVEX maps exist is in `legal`.

use super::Class;
use super::op::{Group, Imm, Op, Row, table};

const fn plain() -> Op {
    Op::plain()
}
const fn m() -> Op {
    Op::plain().m()
}
const fn m_imm8() -> Op {
    Op::plain().m().imm(Imm::Imm8)
}
const fn special() -> Op {
    Op::special().m()
}
const fn g(group: Group) -> Op {
    Op::group(group)
}
const fn bare(class: Class) -> Op {
    Op::class(class)
}

pub(super) static ONE_BYTE: [Op; 256] = {
    const MEM_DST: Op = Op::plain().m().lockable();
    #[rustfmt::skip]
    const ROWS: &[Row] = &[
        // add, or, adc, sbb, and, sub, xor, cmp: r/m,r - r,r/m - al,imm8 - eax,imm32. `cmp` cannot be locked.
        (0x00, 0x01, MEM_DST.kills()), (0x02, 0x03, m().kills()),
        (0x04, 0x04, plain().imm(Imm::Imm8).kills()), (0x05, 0x05, plain().imm(Imm::Imm32).kills()),
        (0x08, 0x09, MEM_DST.kills()), (0x0a, 0x0b, m().kills()),
        (0x0c, 0x0c, plain().imm(Imm::Imm8).kills()), (0x0d, 0x0d, plain().imm(Imm::Imm32).kills()),
        (0x10, 0x11, MEM_DST.reads()), (0x12, 0x13, m().reads()),
        (0x14, 0x14, plain().imm(Imm::Imm8).reads()), (0x15, 0x15, plain().imm(Imm::Imm32).reads()),
        (0x18, 0x19, MEM_DST.reads()), (0x1a, 0x1b, m().reads()),
        (0x1c, 0x1c, plain().imm(Imm::Imm8).reads()), (0x1d, 0x1d, plain().imm(Imm::Imm32).reads()),
        (0x20, 0x21, MEM_DST.kills()), (0x22, 0x23, m().kills()),
        (0x24, 0x24, plain().imm(Imm::Imm8).kills()), (0x25, 0x25, plain().imm(Imm::Imm32).kills()),
        (0x28, 0x29, MEM_DST.kills()), (0x2a, 0x2b, m().kills()),
        (0x2c, 0x2c, plain().imm(Imm::Imm8).kills()), (0x2d, 0x2d, plain().imm(Imm::Imm32).kills()),
        (0x30, 0x31, MEM_DST.kills()), (0x32, 0x33, m().kills()),
        (0x34, 0x34, plain().imm(Imm::Imm8).kills()), (0x35, 0x35, plain().imm(Imm::Imm32).kills()),
        (0x38, 0x3b, m().kills()),
        (0x3c, 0x3c, plain().imm(Imm::Imm8).kills()), (0x3d, 0x3d, plain().imm(Imm::Imm32).kills()),
        (0x0f, 0x0f, Op::escape_0f()),
        (0x26, 0x26, Op::prefix()), (0x2e, 0x2e, Op::prefix()), (0x36, 0x36, Op::prefix()), (0x3e, 0x3e, Op::prefix()),
        (0x40, 0x4f, Op::rex()),
        (0x50, 0x5f, plain()), // push, pop
        (0x62, 0x62, Op::evex()),
        (0x63, 0x63, m()), // movsxd
        (0x64, 0x67, Op::prefix()),
        (0x68, 0x68, plain().imm(Imm::Imm32)), (0x6a, 0x6a, plain().imm(Imm::Imm8)), // push
        (0x69, 0x69, m().imm(Imm::Imm32).kills()), (0x6b, 0x6b, m_imm8().kills()), // imul
        (0x6c, 0x6f, plain()), // ins, outs
        (0x70, 0x7f, bare(Class::JccRel).imm(Imm::Rel8).reads()),
        (0x80, 0x80, g(Group::Arithmetic8)), (0x81, 0x81, g(Group::Arithmetic32)), (0x83, 0x83, g(Group::Arithmetic8)),
        (0x84, 0x85, m().kills()), // test
        (0x86, 0x87, g(Group::Xchg)),
        (0x88, 0x8b, m()),         // mov
        (0x8c, 0x8c, g(Group::MovFromSeg)),
        (0x8d, 0x8d, m()),         // lea
        (0x8e, 0x8e, g(Group::MovToSeg)), (0x8f, 0x8f, g(Group::Pop)),
        (0x90, 0x99, plain()),     // nop, xchg, cbw, cwd
        (0x9b, 0x9b, plain()),     // fwait
        (0x9c, 0x9c, plain().reads()), (0x9d, 0x9d, plain().kills()), // pushf, popf
        (0x9e, 0x9e, plain().mixed()), (0x9f, 0x9f, plain().reads()), // sahf (not OF), lahf
        (0xa0, 0xa3, plain().imm(Imm::Moffs)),
        (0xa4, 0xa5, plain()), (0xa6, 0xa7, Op::special()), // movs, cmps
        (0xa8, 0xa8, plain().imm(Imm::Imm8).kills()), (0xa9, 0xa9, plain().imm(Imm::Imm32).kills()), // test
        (0xaa, 0xad, plain()), (0xae, 0xaf, Op::special()), // stos, lods, scas
        (0xb0, 0xb7, plain().imm(Imm::Imm8)), (0xb8, 0xbf, plain().imm(Imm::Imm64)), // mov
        (0xc0, 0xc1, g(Group::ShiftImm)),
        (0xc2, 0xc2, bare(Class::RetImm).imm(Imm::Imm16)), (0xc3, 0xc3, bare(Class::Ret)),
        (0xc4, 0xc4, Op::vex3()), (0xc5, 0xc5, Op::vex2()),
        (0xc6, 0xc6, g(Group::MovImm8)), (0xc7, 0xc7, g(Group::MovImm32)),
        (0xc8, 0xc8, plain().imm(Imm::Imm24)), (0xc9, 0xc9, plain()),      // enter, leave
        (0xca, 0xca, bare(Class::Unsupported).reads().imm(Imm::Imm16)), (0xcb, 0xcb, bare(Class::Unsupported).reads()), // far ret
        (0xcc, 0xcc, bare(Class::Int3).reads()), (0xcd, 0xcd, bare(Class::IntN).reads().imm(Imm::Imm8)),
        (0xcf, 0xcf, bare(Class::Unsupported).reads()), // iret
        (0xd0, 0xd1, g(Group::ShiftOne)), (0xd2, 0xd3, g(Group::ShiftCl)),
        (0xd7, 0xd7, plain()),                  // xlat
        (0xd8, 0xd9, m()), (0xda, 0xda, g(Group::X87Da)), (0xdb, 0xdb, g(Group::X87Db)),
        (0xdc, 0xde, m()), (0xdf, 0xdf, g(Group::X87Df)),
        (0xe0, 0xe1, bare(Class::LoopLike).imm(Imm::Rel8).reads()), (0xe2, 0xe3, bare(Class::LoopLike).imm(Imm::Rel8)),
        (0xe4, 0xe7, plain().imm(Imm::Imm8)), (0xec, 0xef, plain()), // in, out
        (0xe8, 0xe8, bare(Class::CallRel).imm(Imm::Rel32)), (0xe9, 0xe9, bare(Class::JmpRel).imm(Imm::Rel32)),
        (0xeb, 0xeb, bare(Class::JmpRel).imm(Imm::Rel8)),
        (0xf0, 0xf0, Op::prefix()), (0xf2, 0xf3, Op::prefix()),
        (0xf1, 0xf1, bare(Class::Unsupported).reads()), // int1
        (0xf4, 0xf4, bare(Class::Hlt).reads()),
        (0xf5, 0xf5, plain().reads()), // cmc
        (0xf6, 0xf6, g(Group::Unary8)), (0xf7, 0xf7, g(Group::Unary32)),
        (0xf8, 0xf9, plain().mixed()), (0xfa, 0xfd, plain()), // clc, stc; cli, sti, cld, std
        (0xfe, 0xfe, g(Group::IncDec)), (0xff, 0xff, g(Group::IncDecBranchPush)),
    ];
    table(Op::unknown(), ROWS)
};

pub(super) static M0F: [Op; 256] = {
    #[rustfmt::skip]
    const ROWS: &[Row] = &[
        (0x00, 0x01, special()),
        (0x02, 0x03, m().mixed()), // lar, lsl
        (0x05, 0x05, bare(Class::Syscall).reads()),
        (0x06, 0x06, plain()),
        (0x07, 0x07, bare(Class::Unsupported).reads()), // sysret
        (0x08, 0x09, plain()),                  // invd, wbinvd
        (0x0b, 0x0b, bare(Class::Ud).reads()),
        (0x0e, 0x0e, plain()), // femms
        (0x0f, 0x0f, m_imm8()), // 3DNow!
        (0x1c, 0x1c, special()), // cldemote among the hints 18-1F (prefetch, nop, endbr, rdssp)
        // mov to and from control and debug registers: their ModRM never names memory, so it is just one more byte.
        (0x20, 0x23, plain().imm(Imm::Imm8).reads()),
        (0x2e, 0x2f, m().kills()), // ucomis, comis
        (0x30, 0x30, plain()), (0x31, 0x31, bare(Class::Rdtsc)), (0x32, 0x33, plain()),
        (0x34, 0x35, bare(Class::Unsupported).reads()), // sysenter, sysexit
        (0x37, 0x37, plain().reads()),          // getsec
        (0x40, 0x4f, m().reads()),              // cmov
        (0x70, 0x73, m_imm8()),
        (0x77, 0x77, plain()), // emms
        (0x78, 0x78, special()), (0x79, 0x79, m().reads()), // vmread, extrq, insertq; vmwrite
        (0x80, 0x8f, bare(Class::JccRel).imm(Imm::Rel32).reads()),
        (0x90, 0x9f, m().reads()), // set
        (0xa0, 0xa1, plain()),     // push fs, pop fs
        (0xa2, 0xa2, bare(Class::Cpuid)),
        (0xa3, 0xa3, m().mixed()),                                       // bt
        (0xa4, 0xa4, m_imm8().mixed()), (0xa5, 0xa5, m().mixed()), // shld
        (0xa6, 0xa7, m().reads()),                                       // VIA PadLock
        (0xa8, 0xa9, bare(Class::GsAccess)),                             // push gs, pop gs
        (0xaa, 0xaa, bare(Class::Unsupported).reads()),                          // rsm
        (0xab, 0xab, m().mixed().lockable()),                            // bts
        (0xac, 0xac, m_imm8().mixed()), (0xad, 0xad, m().mixed()), // shrd
        (0xae, 0xae, special()),
        (0xaf, 0xaf, m().kills()),             // imul
        (0xb0, 0xb1, m().kills().lockable()),  // cmpxchg
        (0xb3, 0xb3, m().mixed().lockable()),  // btr
        (0xb5, 0xb5, bare(Class::GsAccess).m()), // lgs
        (0xb8, 0xb8, m().kills()),             // popcnt
        (0xb9, 0xb9, bare(Class::Ud).reads().m()),
        (0xba, 0xba, g(Group::BitImm)),
        (0xbb, 0xbb, m().mixed().lockable()), // btc
        (0xbc, 0xbd, m().mixed()),            // bsf, bsr, tzcnt, lzcnt
        (0xc0, 0xc1, m().kills().lockable()), // xadd
        (0xc2, 0xc2, m_imm8()), (0xc4, 0xc6, m_imm8()),
        (0xc7, 0xc7, special()),
        (0xc8, 0xcf, plain()), // bswap
        (0xff, 0xff, bare(Class::Ud).reads().m()),
    ];
    table(m(), ROWS)
};

pub(super) static M0F38: [Op; 256] = {
    #[rustfmt::skip]
    const ROWS: &[Row] = &[
        (0x17, 0x17, m().kills()),            // ptest
        (0x80, 0x82, m().reads()),            // invept, invvpid, invpcid
        (0xd8, 0xd8, m().reads()), (0xdc, 0xdf, special()), // Key Locker shares DC-DF with AES
        (0xf6, 0xf6, m().reads()),            // adcx, adox, wrss
        (0xf8, 0xf8, special()),                // movdir64b, enqcmd
        (0xfa, 0xfb, m().reads()),            // encodekey
    ];
    table(m(), ROWS)
};

pub(super) static M0F3A: [Op; 256] = {
    const ROWS: &[Row] = &[(0x60, 0x63, m_imm8().kills())]; // pcmpestrm, pcmpestri, pcmpistrm, pcmpistri
    table(m_imm8(), ROWS)
};

pub(super) static VEX1: [Op; 256] = {
    #[rustfmt::skip]
    const ROWS: &[Row] = &[
        (0x2e, 0x2f, m().kills()), // vucomis, vcomis
        (0x70, 0x73, m_imm8()),
        (0x77, 0x77, plain()),     // vzeroupper, vzeroall
        (0x98, 0x99, m().kills()), // kortest, ktest
        (0xc2, 0xc2, m_imm8()), (0xc4, 0xc6, m_imm8()),
    ];
    table(m(), ROWS)
};

pub(super) static VEX2: [Op; 256] = {
    #[rustfmt::skip]
    const ROWS: &[Row] = &[
        (0x0e, 0x0f, m().kills()), (0x17, 0x17, m().kills()), // vtestps, vtestpd, vptest
        (0xe0, 0xef, bare(Class::Locked).m().kills()),            // cmpccxadd
        (0xf2, 0xf3, m().kills()),                                // andn, blsr, blsmsk, blsi
        (0xf5, 0xf5, special()),                                    // bzhi, pdep, pext
        (0xf7, 0xf7, special()),                                    // bextr, shlx, sarx, shrx
    ];
    table(m(), ROWS)
};

/// VEX and legacy agree here: everything has an imm8, and only the string compares touch flags.
pub(super) static VEX3: [Op; 256] = M0F3A;

pub(super) static EVEX1: [Op; 256] = {
    const ROWS: &[Row] =
        &[(0x2e, 0x2f, m().kills()), (0x70, 0x73, m_imm8()), (0xc2, 0xc2, m_imm8()), (0xc4, 0xc6, m_imm8())];
    table(m(), ROWS)
};
pub(super) static EVEX2: [Op; 256] = table(m(), &[]);
pub(super) static EVEX3: [Op; 256] = table(m_imm8(), &[]);
/// vucomish, vcomish.
pub(super) static EVEX5: [Op; 256] = table(m(), &[(0x2e, 0x2f, m().kills())]);
pub(super) static EVEX6: [Op; 256] = table(m(), &[]);
