//! Runs single instructions on the processor; sets all registers before and reads them after.

use std::arch::global_asm;

use iced_x86::{
    Code, CpuidFeature, EncodingKind, Instruction, MemorySizeInfo, OpCodeOperandKind as K, OpKind, Register,
};

#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct Vector(pub [u8; 64]);

impl Default for Vector {
    fn default() -> Self {
        Vector([0; 64])
    }
}

#[repr(C, align(64))]
#[derive(Clone, Default)]
pub struct State {
    pub vectors: [Vector; 32],
    pub general: [u64; 16],
    pub masks: [u64; 8],
    pub flags: u64,
    pub code: u64,
}

// rdi: the state. It stays in r15; rsp is the caller's.
global_asm!(
    ".globl solve_test_run",
    "solve_test_run:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov r15, rdi",
    "test esi, esi",
    "jz 2f",
    "vmovdqu64 zmm0, [r15]",
    "vmovdqu64 zmm1, [r15+64]",
    "vmovdqu64 zmm2, [r15+128]",
    "vmovdqu64 zmm3, [r15+192]",
    "vmovdqu64 zmm4, [r15+256]",
    "vmovdqu64 zmm5, [r15+320]",
    "vmovdqu64 zmm6, [r15+384]",
    "vmovdqu64 zmm7, [r15+448]",
    "vmovdqu64 zmm8, [r15+512]",
    "vmovdqu64 zmm9, [r15+576]",
    "vmovdqu64 zmm10, [r15+640]",
    "vmovdqu64 zmm11, [r15+704]",
    "vmovdqu64 zmm12, [r15+768]",
    "vmovdqu64 zmm13, [r15+832]",
    "vmovdqu64 zmm14, [r15+896]",
    "vmovdqu64 zmm15, [r15+960]",
    "vmovdqu64 zmm16, [r15+1024]",
    "vmovdqu64 zmm17, [r15+1088]",
    "vmovdqu64 zmm18, [r15+1152]",
    "vmovdqu64 zmm19, [r15+1216]",
    "kmovq k0, [r15+2176]",
    "kmovq k1, [r15+2184]",
    "kmovq k2, [r15+2192]",
    "kmovq k3, [r15+2200]",
    "kmovq k4, [r15+2208]",
    "kmovq k5, [r15+2216]",
    "kmovq k6, [r15+2224]",
    "kmovq k7, [r15+2232]",
    "jmp 3f",
    "2:",
    "vmovdqu ymm0, [r15]",
    "vmovdqu ymm1, [r15+64]",
    "vmovdqu ymm2, [r15+128]",
    "vmovdqu ymm3, [r15+192]",
    "vmovdqu ymm4, [r15+256]",
    "vmovdqu ymm5, [r15+320]",
    "vmovdqu ymm6, [r15+384]",
    "vmovdqu ymm7, [r15+448]",
    "vmovdqu ymm8, [r15+512]",
    "vmovdqu ymm9, [r15+576]",
    "vmovdqu ymm10, [r15+640]",
    "vmovdqu ymm11, [r15+704]",
    "vmovdqu ymm12, [r15+768]",
    "vmovdqu ymm13, [r15+832]",
    "vmovdqu ymm14, [r15+896]",
    "vmovdqu ymm15, [r15+960]",
    "3:",
    "push rsi",
    "sub rsp, 8",
    "push qword ptr [r15+2240]",
    "popfq",
    "mov rax, [r15+2048]",
    "mov rcx, [r15+2056]",
    "mov rdx, [r15+2064]",
    "mov rbx, [r15+2072]",
    "mov rbp, [r15+2088]",
    "mov rsi, [r15+2096]",
    "mov rdi, [r15+2104]",
    "mov r8, [r15+2112]",
    "mov r9, [r15+2120]",
    "mov r10, [r15+2128]",
    "mov r11, [r15+2136]",
    "mov r12, [r15+2144]",
    "mov r13, [r15+2152]",
    "mov r14, [r15+2160]",
    "call qword ptr [r15+2248]",
    "mov [r15+2048], rax",
    "mov [r15+2056], rcx",
    "mov [r15+2064], rdx",
    "mov [r15+2072], rbx",
    "mov [r15+2088], rbp",
    "mov [r15+2096], rsi",
    "mov [r15+2104], rdi",
    "mov [r15+2112], r8",
    "mov [r15+2120], r9",
    "mov [r15+2128], r10",
    "mov [r15+2136], r11",
    "mov [r15+2144], r12",
    "mov [r15+2152], r13",
    "mov [r15+2160], r14",
    "pushfq",
    "pop qword ptr [r15+2240]",
    "cld",
    "add rsp, 8",
    "pop rsi",
    "test esi, esi",
    "jz 4f",
    "vmovdqu64 [r15], zmm0",
    "vmovdqu64 [r15+64], zmm1",
    "vmovdqu64 [r15+128], zmm2",
    "vmovdqu64 [r15+192], zmm3",
    "vmovdqu64 [r15+256], zmm4",
    "vmovdqu64 [r15+320], zmm5",
    "vmovdqu64 [r15+384], zmm6",
    "vmovdqu64 [r15+448], zmm7",
    "vmovdqu64 [r15+512], zmm8",
    "vmovdqu64 [r15+576], zmm9",
    "vmovdqu64 [r15+640], zmm10",
    "vmovdqu64 [r15+704], zmm11",
    "vmovdqu64 [r15+768], zmm12",
    "vmovdqu64 [r15+832], zmm13",
    "vmovdqu64 [r15+896], zmm14",
    "vmovdqu64 [r15+960], zmm15",
    "vmovdqu64 [r15+1024], zmm16",
    "vmovdqu64 [r15+1088], zmm17",
    "vmovdqu64 [r15+1152], zmm18",
    "vmovdqu64 [r15+1216], zmm19",
    "kmovq [r15+2176], k0",
    "kmovq [r15+2184], k1",
    "kmovq [r15+2192], k2",
    "kmovq [r15+2200], k3",
    "kmovq [r15+2208], k4",
    "kmovq [r15+2216], k5",
    "kmovq [r15+2224], k6",
    "kmovq [r15+2232], k7",
    "jmp 5f",
    "4:",
    "vmovdqu [r15], ymm0",
    "vmovdqu [r15+64], ymm1",
    "vmovdqu [r15+128], ymm2",
    "vmovdqu [r15+192], ymm3",
    "vmovdqu [r15+256], ymm4",
    "vmovdqu [r15+320], ymm5",
    "vmovdqu [r15+384], ymm6",
    "vmovdqu [r15+448], ymm7",
    "vmovdqu [r15+512], ymm8",
    "vmovdqu [r15+576], ymm9",
    "vmovdqu [r15+640], ymm10",
    "vmovdqu [r15+704], ymm11",
    "vmovdqu [r15+768], ymm12",
    "vmovdqu [r15+832], ymm13",
    "vmovdqu [r15+896], ymm14",
    "vmovdqu [r15+960], ymm15",
    "5:",
    "vzeroupper",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
);

unsafe extern "C" {
    fn solve_test_run(state: *mut State, wide: u32);
}

/// A page for code, and 64 bytes for its operand.
pub struct Processor {
    page: *mut u8,
    memory: Box<Vector>,
}

const PAGE: usize = 4096;
const RET: u8 = 0xc3;

impl Processor {
    pub fn new() -> Self {
        let (read_write, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh mapping.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, read_write | libc::PROT_EXEC, flags, -1, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        Processor { page: page.cast(), memory: Box::default() }
    }

    pub fn load(&mut self, code: &[u8]) {
        // SAFETY: the page is ours, and code is at most 15 bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), self.page, code.len());
            *self.page.add(code.len()) = RET;
        }
    }

    pub fn memory(&mut self) -> &mut [u8; 64] {
        &mut self.memory.0
    }

    pub fn memory_address(&self) -> u64 {
        std::ptr::from_ref(&*self.memory) as u64
    }

    pub fn run(&mut self, state: &mut State) {
        state.code = self.page as u64;
        // SAFETY: the code is one instruction that stores to `memory` at most, and returns; all registers are put back.
        unsafe { solve_test_run(state, has_masks().into()) };
    }
}

/// Is there AVX-512 as far as the tests go?
pub fn has_masks() -> bool {
    is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512dq")
}

/// Vector registers that are compared: the upper ones are used by nobody here.
pub fn vectors() -> usize {
    if has_masks() { 20 } else { 16 }
}

pub fn vector_bytes() -> usize {
    if has_masks() { 64 } else { 32 }
}

pub fn supports(code: Code) -> bool {
    use CpuidFeature as F;
    code.cpuid_features().iter().all(|feature| match feature {
        F::INTEL8086 | F::INTEL186 | F::INTEL286 | F::INTEL386 | F::INTEL486 | F::X64 | F::CMOV | F::SSE | F::SSE2 => {
            true
        }
        F::SSE3 => is_x86_feature_detected!("sse3"),
        F::SSSE3 => is_x86_feature_detected!("ssse3"),
        F::SSE4_1 => is_x86_feature_detected!("sse4.1"),
        F::SSE4_2 => is_x86_feature_detected!("sse4.2"),
        F::POPCNT => is_x86_feature_detected!("popcnt"),
        F::LZCNT => is_x86_feature_detected!("lzcnt"),
        F::BMI1 => is_x86_feature_detected!("bmi1"),
        F::BMI2 => is_x86_feature_detected!("bmi2"),
        F::MOVBE => is_x86_feature_detected!("movbe"),
        F::AVX => is_x86_feature_detected!("avx"),
        F::AVX2 => is_x86_feature_detected!("avx2"),
        F::AVX512F | F::AVX512BW | F::AVX512VL | F::AVX512DQ => has_masks(),
        F::AVX512CD => has_masks() && is_x86_feature_detected!("avx512cd"),
        F::AVX512_VPOPCNTDQ => has_masks() && is_x86_feature_detected!("avx512vpopcntdq"),
        _ => false,
    })
}

/// Bytes of the memory operand.
pub fn memory_len(form: &Instruction) -> usize {
    if (0..form.op_count()).all(|op| form.op_kind(op) != OpKind::Memory) {
        return 0;
    }
    let info: &MemorySizeInfo = form.memory_size().info();
    if form.is_broadcast() { info.element_size() } else { info.size() }
}

/// The instruction with this code, with a memory operand or without; `None`: there is no such form.
pub fn form(code: Code, memory: bool, random: u64) -> Option<Instruction> {
    let mut form = Instruction::default();
    form.set_code(code);
    let info = code.op_code();
    let (mut used_memory, mut could) = (false, false);
    let mut random = random;
    let mut pick = |list: &[Register]| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        list[(random >> 33) as usize % list.len()]
    };
    use Register as R;
    let divides = matches!(code.mnemonic(), iced_x86::Mnemonic::Div | iced_x86::Mnemonic::Idiv);
    let r8 = if divides { vec![R::R9L, R::BL] } else { vec![R::AL, R::CL, R::DL, R::BL, R::SIL, R::R9L, R::R12L] };
    let r16 = if divides { vec![R::BX, R::R9W] } else { vec![R::AX, R::CX, R::DX, R::SI, R::R9W, R::R12W] };
    let r32 = if divides { vec![R::EBX, R::R9D] } else { vec![R::EAX, R::ECX, R::EDX, R::ESI, R::R9D, R::R12D] };
    let r64 = if divides { vec![R::RBX, R::R9] } else { vec![R::RAX, R::RCX, R::RDX, R::RSI, R::R9, R::R12] };
    let (xmm, ymm, zmm) = if code.encoding() == EncodingKind::EVEX {
        (vec![R::XMM0, R::XMM1, R::XMM17, R::XMM9], vec![R::YMM2, R::YMM3, R::YMM18], vec![R::ZMM4, R::ZMM5, R::ZMM19])
    } else {
        (vec![R::XMM0, R::XMM1, R::XMM2, R::XMM9], vec![R::YMM2, R::YMM3, R::YMM11], vec![R::ZMM4, R::ZMM5])
    };
    let masks = [R::K1, R::K2, R::K5, R::K7];
    for op in 0..info.op_count() {
        let kind = info.op_kind(op);
        let or_memory = |list: &[Register]| (list.to_vec(), true);
        let (list, may) = match kind {
            K::mem => (Vec::new(), true),
            K::r8_or_mem => or_memory(&r8),
            K::r16_or_mem => or_memory(&r16),
            K::r32_or_mem => or_memory(&r32),
            K::r64_or_mem => or_memory(&r64),
            K::xmm_or_mem => or_memory(&xmm),
            K::ymm_or_mem => or_memory(&ymm),
            K::zmm_or_mem => or_memory(&zmm),
            K::k_or_mem => or_memory(&masks),
            K::r8_reg | K::r8_opcode => (r8.clone(), false),
            K::r16_reg | K::r16_rm | K::r16_opcode => (r16.clone(), false),
            K::r32_reg | K::r32_rm | K::r32_opcode | K::r32_vvvv => (r32.clone(), false),
            K::r64_reg | K::r64_rm | K::r64_opcode | K::r64_vvvv => (r64.clone(), false),
            K::xmm_reg | K::xmm_rm | K::xmm_vvvv | K::xmm_is4 => (xmm.clone(), false),
            K::ymm_reg | K::ymm_rm | K::ymm_vvvv | K::ymm_is4 => (ymm.clone(), false),
            K::zmm_reg | K::zmm_rm | K::zmm_vvvv => (zmm.clone(), false),
            K::k_reg | K::k_rm | K::k_vvvv => (masks.to_vec(), false),
            K::al => (vec![R::AL], false),
            K::cl => (vec![R::CL], false),
            K::ax => (vec![R::AX], false),
            K::eax => (vec![R::EAX], false),
            K::rax => (vec![R::RAX], false),
            K::imm8
            | K::imm8_const_1
            | K::imm8sex16
            | K::imm8sex32
            | K::imm8sex64
            | K::imm16
            | K::imm32
            | K::imm32sex64
            | K::imm64 => {
                let kind = match kind {
                    K::imm8sex16 => OpKind::Immediate8to16,
                    K::imm8sex32 => OpKind::Immediate8to32,
                    K::imm8sex64 => OpKind::Immediate8to64,
                    K::imm16 => OpKind::Immediate16,
                    K::imm32 => OpKind::Immediate32,
                    K::imm32sex64 => OpKind::Immediate32to64,
                    K::imm64 => OpKind::Immediate64,
                    _ => OpKind::Immediate8,
                };
                form.set_op_kind(op, kind);
                let value =
                    (pick(&[R::AL, R::CL, R::DL]).number() as i32 * 37 + 5) % 61 - if op % 2 == 1 { 0 } else { 3 };
                match kind {
                    _ if info.op_kind(op) == K::imm8_const_1 => form.set_immediate8(1),
                    OpKind::Immediate8 => form.set_immediate8(value as u8),
                    OpKind::Immediate16 => form.set_immediate16(value as u16),
                    OpKind::Immediate64 => form.set_immediate64(value as u64 | 0x1234_5678_0000_0000),
                    OpKind::Immediate8to16 => form.set_immediate8to16(value as i16),
                    OpKind::Immediate8to32 => form.set_immediate8to32(value),
                    OpKind::Immediate8to64 => form.set_immediate8to64(value.into()),
                    OpKind::Immediate32to64 => form.set_immediate32to64(i64::from(value) - 1_000_000),
                    _ => form.set_immediate32(value as u32),
                }
                continue;
            }
            _ => return None,
        };
        could |= may;
        if may && (memory || list.is_empty()) {
            form.set_op_kind(op, OpKind::Memory);
            form.set_memory_base(Register::R14);
            used_memory = true;
        } else {
            form.set_op_kind(op, OpKind::Register);
            form.set_op_register(op, pick(&list));
        }
    }
    // `lea` does not touch its operand, and wants registers in it.
    if code.mnemonic() == iced_x86::Mnemonic::Lea {
        form.set_memory_base(Register::RBX);
        form.set_memory_index(Register::R9);
        form.set_memory_index_scale(4);
        form.set_memory_displ_size(8);
        form.set_memory_displacement64(0x1234);
    }
    (used_memory == memory || !could && !memory).then_some(form)
}

/// The same under a mask, merging and clearing, and with a repeated element.
pub fn masked(form: &Instruction) -> Vec<Instruction> {
    let info = form.code().op_code();
    let mut forms = Vec::new();
    if info.can_use_op_mask_register() {
        let mut merging = *form;
        merging.set_op_mask(Register::K3);
        forms.push(merging);
        if info.can_use_zeroing_masking() && form.op0_kind() == OpKind::Register {
            let mut clearing = merging;
            clearing.set_zeroing_masking(true);
            forms.push(clearing);
        }
    }
    if info.can_broadcast() && memory_len(form) > 0 {
        let mut repeated = *form;
        repeated.set_is_broadcast(true);
        forms.push(repeated);
    }
    forms
}
