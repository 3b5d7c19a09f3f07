//! Which instructions store, and how: the reference recorder's own small table, independent of `isa`.
//!
//! The rule is: an instruction whose first operand is memory stores there. The table holds the exceptions.

use yaxpeax_x86::long_mode::Opcode;

/// Instructions that only read (or do not touch at all) a memory operand in first place.
pub fn only_reads_first_operand(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        CMP | TEST
            | BT
            | PUSH
            | CALL
            | CALLF
            | JMP
            | JMPF
            | MUL
            | IMUL
            | DIV
            | IDIV
            | NOP
            | LEA
            | PREFETCHNTA
            | PREFETCH0
            | PREFETCH1
            | PREFETCH2
            | PREFETCHW
            | CLFLUSH
            | CLFLUSHOPT
            | CLWB
            | LDMXCSR
            | VLDMXCSR
            | FXRSTOR
            | XRSTOR
            | XRSTORS
            | XRSTORS64
            | LGDT
            | LIDT
            | LLDT
            | LTR
            | LMSW
            | VERR
            | VERW
            | INVLPG
            | PTWRITE
            | UD0
            | UD1
            | CMPS
            | SCAS
            | LODS
            | OUTS
            | FADD
            | FCOM
            | FCOMP
            | FDIV
            | FDIVR
            | FIADD
            | FICOM
            | FICOMP
            | FIDIV
            | FIDIVR
            | FILD
            | FIMUL
            | FISUB
            | FISUBR
            | FLD
            | FLDCW
            | FLDENV
            | FMUL
            | FRSTOR
            | FSUB
            | FSUBR
            | FBLD
            | VGATHERPF0DPD
            | VGATHERPF0DPS
            | VGATHERPF0QPD
            | VGATHERPF0QPS
            | VGATHERPF1DPD
            | VGATHERPF1DPS
            | VGATHERPF1QPD
            | VGATHERPF1QPS
            | VSCATTERPF0DPD
            | VSCATTERPF0DPS
            | VSCATTERPF0QPD
            | VSCATTERPF0QPS
            | VSCATTERPF1DPD
            | VSCATTERPF1DPS
            | VSCATTERPF1QPD
            | VSCATTERPF1QPS
            | RSTORSSP
            | AESDECWIDE128KL
            | AESDECWIDE256KL
            | AESENCWIDE128KL
            | AESENCWIDE256KL
            | CLRSSBSY
            | VMCLEAR
            | VMPTRLD
            | VMXON
            | BNDCL
            | BNDCU
            | BNDCN
            | BNDMK
            | BNDLDX
    )
}

/// Stores that bypass the cache.
pub fn is_non_temporal(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        MOVNTI
            | MOVNTPS
            | MOVNTPD
            | MOVNTQ
            | MOVNTDQ
            | MOVNTSS
            | MOVNTSD
            | VMOVNTPS
            | VMOVNTPD
            | VMOVNTDQ
            | MASKMOVQ
            | MASKMOVDQU
            | VMASKMOVDQU
            | MOVDIRI
            | CLZERO
    )
}

/// Bytes that a mask bit stands for, where the instruction can be masked by a `k` register.
pub fn mask_element(opcode: Opcode) -> Option<u64> {
    use Opcode::*;
    Some(match opcode {
        VMOVDQU8 | VPMOVWB | VPMOVSWB | VPMOVUSWB | VPMOVDB | VPMOVSDB | VPMOVUSDB | VPMOVQB | VPMOVSQB | VPMOVUSQB
        | VPCOMPRESSB => 1,
        VMOVDQU16 | VPMOVDW | VPMOVSDW | VPMOVUSDW | VPMOVQW | VPMOVSQW | VPMOVUSQW | VPCOMPRESSW | VCVTPS2PH => 2,
        VMOVDQU32 | VMOVDQA32 | VMOVAPS | VMOVUPS | VMOVSS | VEXTRACTF32X4 | VEXTRACTF32X8 | VEXTRACTI32X4
        | VEXTRACTI32X8 | VPMOVQD | VPMOVSQD | VPMOVUSQD | VCOMPRESSPS | VPCOMPRESSD => 4,
        VMOVDQU64 | VMOVDQA64 | VMOVAPD | VMOVUPD | VMOVSD | VEXTRACTF64X2 | VEXTRACTF64X4 | VEXTRACTI64X2
        | VEXTRACTI64X4 | VCOMPRESSPD | VPCOMPRESSQ => 8,
        _ => return None,
    })
}

/// Stores the enabled elements next to each other, instead of each in its place.
pub fn is_compress(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(opcode, VCOMPRESSPS | VCOMPRESSPD | VPCOMPRESSB | VPCOMPRESSW | VPCOMPRESSD | VPCOMPRESSQ)
}

/// Stores whose mask is the top bit of each element of a vector register (the second operand).
pub fn vector_mask_element(opcode: Opcode) -> Option<u64> {
    use Opcode::*;
    match opcode {
        VMASKMOVPS | VPMASKMOVD => Some(4),
        VMASKMOVPD | VPMASKMOVQ => Some(8),
        _ => None,
    }
}

/// Sizes that the decoder leaves open or that depend on the operand size (Intel SDM vol. 1, figures 8-9 to 8-12).
pub fn fixed_size(opcode: Opcode, short_operand: bool) -> Option<u64> {
    use Opcode::*;
    Some(match opcode {
        FXSAVE => 512,
        FNSTENV => {
            if short_operand {
                14
            } else {
                28
            }
        }
        FNSAVE => {
            if short_operand {
                94
            } else {
                108
            }
        }
        FNSTCW | FNSTSW => 2,
        FBSTP => 10,
        CMPXCHG16B => 16,
        CMPXCHG8B => 8,
        // The decoder takes the VEX forms for whole registers.
        VMOVLPS | VMOVLPD | VMOVHPS | VMOVHPD => 8,
        STMXCSR | VSTMXCSR => 4,
        SGDT | SIDT => 10,
        _ => return None,
    })
}
