//! The table: one row per family of instructions.

use super::{FenceKind, FlushKind, How, Source, StateArea};
use iced_x86::Mnemonic::{self, *};

/// How the effect of an instruction follows from its family. A rule about the destination applies where the
/// destination is memory; with a register (or as a load) the instruction has no effect.
#[derive(Clone, Copy)]
pub(super) enum EffectRule {
    /// Writes the destination; under an opmask, its enabled elements.
    Store(How),
    /// Reads and writes the destination.
    Update,
    /// As `Update`, and locked without the prefix.
    LockedUpdate,
    /// As `Update`; a register as bit number reaches beyond the operand.
    BitUpdate,
    /// Writes the elements that the second operand's top bits enable.
    VectorMasked,
    Compress,
    Scatter,
    ByteMasked,
    /// Writes at `rdi`.
    String,
    Push,
    /// The near forms push.
    Call,
    Enter,
    Pop,
    State(StateArea),
    Movdir64b,
    Clzero,
    Flush(FlushKind),
    Fence(FenceKind),
    Varies(Source),
    /// Where it writes memory at all.
    Unsupported(&'static str),
}

type Row = (EffectRule, &'static [Mnemonic]);

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // General registers.
    (EffectRule::Store(How::Plain), &[
        Mov, Movbe, Seta, Setae, Setb, Setbe, Sete, Setg, Setge, Setl, Setle, Setne, Setno, Setnp, Setns, Seto, Setp, Sets,
    ]),
    (EffectRule::Update, &[
        Add, Or, Adc, Sbb, And, Sub, Xor, Inc, Dec, Not, Neg, Shl, Sal, Shr, Sar, Rol, Ror, Rcl, Rcr, Shld, Shrd,
        Xadd, Cmpxchg, Cmpxchg8b, Cmpxchg16b,
        // RAO-INT: atomic, but ordered like no locked instruction.
        Aadd, Aand, Aor, Axor,
    ]),
    (EffectRule::LockedUpdate, &[
        Xchg,
        Cmpbexadd, Cmpbxadd, Cmplexadd, Cmplxadd, Cmpnbexadd, Cmpnbxadd, Cmpnlexadd, Cmpnlxadd,
        Cmpnoxadd, Cmpnpxadd, Cmpnsxadd, Cmpnzxadd, Cmpoxadd, Cmppxadd, Cmpsxadd, Cmpzxadd,
    ]),
    (EffectRule::BitUpdate, &[Bts, Btr, Btc]),
    (EffectRule::String, &[Movsb, Movsw, Movsd, Movsq, Stosb, Stosw, Stosd, Stosq, Insb, Insw, Insd]),
    (EffectRule::Push, &[Push, Pushf, Pushfq]),
    (EffectRule::Call, &[Call]),
    (EffectRule::Enter, &[Enter]),
    (EffectRule::Pop, &[Pop]),

    // x87 and MMX.
    (EffectRule::Store(How::Plain), &[
        Fst, Fstp, Fist, Fistp, Fisttp, Fbstp, Fnstcw, Fnstsw, Fnstenv, Fnsave, Movd, Movq,
    ]),

    // SSE.
    (EffectRule::Store(How::Plain), &[
        Movaps, Movapd, Movups, Movupd, Movdqa, Movdqu, Movss, Movhps, Movhpd, Movlps, Movlpd,
        Extractps, Pextrb, Pextrw, Pextrd, Pextrq, Stmxcsr,
    ]),

    // AVX and AVX-512.
    (EffectRule::Store(How::Plain), &[
        Vmovaps, Vmovapd, Vmovups, Vmovupd, Vmovdqa, Vmovdqu,
        Vmovdqa32, Vmovdqa64, Vmovdqu8, Vmovdqu16, Vmovdqu32, Vmovdqu64,
        Vmovss, Vmovsd, Vmovsh, Vmovw, Vmovd, Vmovq, Vmovhps, Vmovhpd, Vmovlps, Vmovlpd,
        Vextractps, Vpextrb, Vpextrw, Vpextrd, Vpextrq, Vextractf128, Vextracti128,
        Vextractf32x4, Vextractf32x8, Vextractf64x2, Vextractf64x4,
        Vextracti32x4, Vextracti32x8, Vextracti64x2, Vextracti64x4,
        Vcvtps2ph, Vstmxcsr, Kmovb, Kmovw, Kmovd, Kmovq,
        // Down-converting moves.
        Vpmovwb, Vpmovswb, Vpmovuswb, Vpmovdb, Vpmovsdb, Vpmovusdb, Vpmovdw, Vpmovsdw, Vpmovusdw,
        Vpmovqb, Vpmovsqb, Vpmovusqb, Vpmovqw, Vpmovsqw, Vpmovusqw, Vpmovqd, Vpmovsqd, Vpmovusqd,
    ]),
    (EffectRule::VectorMasked, &[Vmaskmovps, Vmaskmovpd, Vpmaskmovd, Vpmaskmovq]),
    (EffectRule::Compress, &[Vcompressps, Vcompresspd, Vpcompressb, Vpcompressw, Vpcompressd, Vpcompressq]),
    (EffectRule::Scatter, &[
        Vscatterdps, Vscatterdpd, Vscatterqps, Vscatterqpd, Vpscatterdd, Vpscatterdq, Vpscatterqd, Vpscatterqq,
    ]),

    // Non-temporal and direct stores.
    (EffectRule::Store(How::NonTemporal), &[
        Movnti, Movntq, Movntdq, Movntps, Movntpd, Movntss, Movntsd, Vmovntdq, Vmovntps, Vmovntpd, Movdiri,
    ]),
    (EffectRule::ByteMasked, &[Maskmovq, Maskmovdqu, Vmaskmovdqu]),
    (EffectRule::Movdir64b, &[Movdir64b]),
    (EffectRule::Clzero, &[Clzero]),

    // Processor state.
    (EffectRule::State(StateArea::Fxsave), &[Fxsave, Fxsave64]),
    (EffectRule::State(StateArea::Xsave), &[Xsave, Xsave64]),
    (EffectRule::State(StateArea::Xsaveopt), &[Xsaveopt, Xsaveopt64]),
    (EffectRule::State(StateArea::Xsavec), &[Xsavec, Xsavec64]),
    (EffectRule::State(StateArea::Xsaves), &[Xsaves, Xsaves64]),
    (EffectRule::Store(How::Plain), &[Sttilecfg, Sgdt, Sidt, Sldt, Str, Smsw]),

    // Order and durability.
    (EffectRule::Flush(FlushKind::Clflush), &[Clflush]),
    (EffectRule::Flush(FlushKind::Clflushopt), &[Clflushopt]),
    (EffectRule::Flush(FlushKind::Clwb), &[Clwb]),
    (EffectRule::Flush(FlushKind::Cldemote), &[Cldemote]),
    (EffectRule::Fence(FenceKind::Sfence), &[Sfence]),
    (EffectRule::Fence(FenceKind::Mfence), &[Mfence]),
    (EffectRule::Fence(FenceKind::Lfence), &[Lfence]),

    // Different in every run.
    (EffectRule::Varies(Source::Rdrand), &[Rdrand]),
    (EffectRule::Varies(Source::Rdseed), &[Rdseed]),
    (EffectRule::Varies(Source::Rdtsc), &[Rdtsc]),
    (EffectRule::Varies(Source::Rdtscp), &[Rdtscp]),

    // Not recorded.
    (EffectRule::Unsupported("an AMX tile store"), &[Tilestored]),
    (EffectRule::Unsupported("an enqueue store, which is meant for devices"), &[Enqcmd, Enqcmds]),
    (EffectRule::Unsupported("a store to a shadow stack"), &[Wrssd, Wrssq, Wrussd, Wrussq, Rstorssp, Clrssbsy]),
    (EffectRule::Unsupported("a privileged instruction"), &[Vmptrst, Vmread, Rdmsrlist, Pbndkb]),
    (EffectRule::Unsupported("a PadLock instruction"), &[
        Xstore, Xstore_alt, Xcryptecb, Xcryptcbc, Xcryptctr, Xcryptcfb, Xcryptofb,
        Xsha1, Xsha256, Xsha512, Xsha512_alt, Ccs_hash, Ccs_encrypt,
    ]),
];

/// Row number + 1 by mnemonic; 0: in no row.
static ROW_OF: [u8; 2048] = {
    let mut row_of = [0; 2048];
    let mut row = 0;
    while row < ROWS.len() {
        let mnemonics = ROWS[row].1;
        let mut i = 0;
        while i < mnemonics.len() {
            let slot = &mut row_of[mnemonics[i] as usize];
            assert!(*slot == 0, "an instruction is in two rows");
            *slot = row as u8 + 1;
            i += 1;
        }
        row += 1;
    }
    row_of
};

/// The rule of the family that `mnemonic` belongs to.
pub(super) fn rule(mnemonic: Mnemonic) -> Option<EffectRule> {
    let row = *ROW_OF.get(mnemonic as usize)?;
    ROWS.get((row as usize).checked_sub(1)?).map(|row| row.0)
}
