//! The reference recorder's view of single instructions.

use crate::step_support::run_main_with;

/// Runs assembly statements with `rdi` at the pool.
fn asm(code: &str, flags: &[&str]) -> Vec<String> {
    let quoted: String = code.split(';').map(|line| format!("\"{}\\n\"\n", line.trim())).collect();
    let function = format!(
        "__asm__(\"code: push %rbx\\n push %rbp\\n\" {quoted} \"pop %rbp\\n pop %rbx\\n ret\\n\"); void code(volatile void *);"
    );
    run_main_with(&function, "code(pm)", flags)
}

#[test]
fn plain_stores_of_every_width() {
    let lines = asm(
        "movb $1, (%rdi); movw $0x1234, 2(%rdi); movl $5, 4(%rdi); movq $6, 8(%rdi); movb %ah, 1(%rdi); \
         pxor %xmm0, %xmm0; movups %xmm0, 16(%rdi); movd %xmm0, 32(%rdi); movq %xmm0, 40(%rdi); \
         movlps %xmm0, 48(%rdi); pextrw $0, %xmm0, 56(%rdi); sete 60(%rdi); fldz; fstpt 64(%rdi); fnstcw 80(%rdi)",
        &[],
    );
    let expected = ["t0 Plain 0x0 01", "t0 Plain 0x2 3412", "t0 Plain 0x4 05000000", "t0 Plain 0x8 0600000000000000"];
    assert_eq!(lines[..4], expected);
    let zeros = |count: usize| "00".repeat(count);
    assert_eq!(lines[5], format!("t0 Plain 0x10 {}", zeros(16)));
    assert_eq!(lines[6], format!("t0 Plain 0x20 {}", zeros(4)));
    assert_eq!(lines[7], format!("t0 Plain 0x28 {}", zeros(8)));
    assert_eq!(lines[8], format!("t0 Plain 0x30 {}", zeros(8)));
    assert_eq!(lines[9], "t0 Plain 0x38 0000");
    assert_eq!(lines[11], format!("t0 Plain 0x40 {}", zeros(10)));
    assert_eq!(lines[12], "t0 Plain 0x50 7f03");
    assert_eq!(lines.len(), 13);
}

#[test]
fn read_modify_writes_flushes_and_fences() {
    let lines = asm(
        "movq $5, (%rdi); addq $1, (%rdi); lock; addq $2, (%rdi); movl $9, %eax; xchgl %eax, (%rdi); \
         clwb (%rdi); lock; addl $0, -8(%rsp); lock; addl $0, -8(%rsp); clflushopt 3(%rdi); sfence; clflush -64(%rsp); \
         mfence; lfence; cldemote (%rdi); movnti %eax, 64(%rdi); lock; orl $0, -8(%rsp)",
        &[],
    );
    let expected = [
        "t0 Plain 0x0 0500000000000000",
        "t0 Plain 0x0 0600000000000000",
        "t0 rmw 0x0 0600000000000000 -> 0800000000000000",
        "t0 rmw 0x0 08000000 -> 09000000",
        "t0 Clwb 0x0",
        "t0 Locked",
        "t0 Clflushopt 0x3",
        "t0 Sfence",
        "t0 Clflush volatile",
        "t0 Mfence",
        "t0 Cldemote 0x0",
        "t0 NonTemporal 0x40 08000000",
        "t0 Locked",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn string_instructions_are_cut_at_page_boundaries_in_copy_direction() {
    let lines =
        asm("mov %rdi, %rbx; lea 4000(%rbx), %rdi; mov $5000, %ecx; xor %eax, %eax; rep stosb; mov %rbx, %rdi", &[]);
    assert_eq!(lines, ["t0 Plain 0xfa0 96 bytes", "t0 Plain 0x1000 4096 bytes", "t0 Plain 0x2000 808 bytes"]);
    let lines = asm(
        "mov %rdi, %rbx; lea 4100(%rbx), %rdi; lea 9000(%rbx), %rsi; mov $3, %ecx; std; rep movsq; cld; xor %ecx, %ecx; \
         rep stosb; movsb; mov %rbx, %rdi",
        &[],
    );
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0], "t0 Plain 0x1000 eeeeeeeeeeeeeeeeeeeeeeee");
    assert_eq!(lines[1], "t0 Plain 0xff4 eeeeeeeeeeeeeeeeeeeeeeee");
}

#[test]
fn bit_instructions_reach_beyond_their_operand() {
    let lines = asm(
        "lea 128(%rdi), %rdi; mov $-9, %eax; btrl %eax, (%rdi); mov $100, %rax; btsq %rax, (%rdi); btcw $3, (%rdi); \
         lock; btsl $1, 8(%rdi)",
        &[],
    );
    let expected = [
        "t0 Plain 0x7c eeee6eee",
        "t0 Plain 0x88 eeeeeeeefeeeeeee",
        "t0 Plain 0x80 e6ee",
        "t0 rmw 0x88 eeeeeeee -> eeeeeeee",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_stack_in_pm() {
    let lines = asm(
        "mov %rsp, %rbx; lea 256(%rdi), %rsp; pushq $7; popq 32(%rsp); pushw $3; lea 2(%rsp), %rsp; \
         call 1f; 1:; add $8, %rsp; mov $1, %ebp; enter $16, $0; pushfq; mov %rbx, %rsp",
        &["-fomit-frame-pointer"],
    );
    assert_eq!(lines[0], "t0 Plain 0xf8 0700000000000000");
    assert_eq!(lines[1], "t0 Plain 0x120 0700000000000000");
    assert_eq!(lines[2], "t0 Plain 0xfe 0300");
    assert!(lines[3].starts_with("t0 Plain 0xf8 "), "{}", lines[3]);
    assert_eq!(lines[4], "t0 Plain 0xf8 0100000000000000");
    let flags = lines[5].strip_prefix("t0 Plain 0xe0 ").unwrap();
    assert_eq!(u8::from_str_radix(&flags[2..4], 16).unwrap() & 1, 0, "the trap flag shows in {flags}");
    assert_eq!(lines.len(), 6);
}

#[test]
fn compare_and_exchange() {
    let lines = asm(
        "xor %eax, %eax; xor %edx, %edx; mov $1, %ebx; mov $2, %ecx; lock; cmpxchg8b (%rdi); lock; cmpxchg8b (%rdi); \
         cmpxchgl %ecx, 8(%rdi); mov $5, %eax; lock; xaddl %eax, 16(%rdi)",
        &[],
    );
    let expected = [
        "t0 rmw 0x0 eeeeeeeeeeeeeeee -> eeeeeeeeeeeeeeee",
        "t0 rmw 0x0 eeeeeeeeeeeeeeee -> 0100000002000000",
        "t0 Plain 0x8 02000000",
        "t0 rmw 0x10 eeeeeeee -> f3eeeeee",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn masked_byte_stores() {
    let lines = asm(
        "pcmpeqd %xmm0, %xmm0; pxor %xmm1, %xmm1; mov $0x8000808080ff0080, %rax; movq %rax, %xmm1; maskmovdqu %xmm1, %xmm0; \
         movq %rax, %mm1; pxor %mm0, %mm0; maskmovq %mm1, %mm0; emms",
        &[],
    );
    let expected = [
        "t0 NonTemporal 0x0 ff",
        "t0 NonTemporal 0x2 ffffffff",
        "t0 NonTemporal 0x7 ff",
        "t0 NonTemporal 0x0 00",
        "t0 NonTemporal 0x2 00000000",
        "t0 NonTemporal 0x7 00",
    ];
    assert_eq!(lines, expected);
}

fn processor_has(flag: &str) -> bool {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let has = info.lines().filter(|line| line.starts_with("flags")).any(|line| line.split(' ').any(|f| f == flag));
    if !has {
        eprintln!("skipped: this processor has no {flag}");
    }
    has
}

#[test]
fn avx_stores() {
    if !processor_has("avx2") {
        return;
    }
    let lines = asm(
        "vpcmpeqd %ymm0, %ymm0, %ymm0; vmovups %ymm0, (%rdi); mov $0x80000000, %eax; vmovd %eax, %xmm1; \
         vpshufd $0xcc, %xmm1, %xmm1; vmaskmovps %ymm0, %ymm1, 64(%rdi); vpmaskmovq %xmm0, %xmm0, 96(%rdi); \
         vextracti128 $1, %ymm0, 128(%rdi); vmovntdq %ymm0, 160(%rdi); vzeroupper",
        &[],
    );
    let ones = |count: usize| "ff".repeat(count);
    let expected = [
        format!("t0 Plain 0x0 {}", ones(32)),
        "t0 Plain 0x44 ffffffff".to_owned(),
        "t0 Plain 0x4c ffffffff".to_owned(),
        format!("t0 Plain 0x60 {}", ones(16)),
        format!("t0 Plain 0x80 {}", ones(16)),
        format!("t0 NonTemporal 0xa0 {}", ones(32)),
    ];
    // vpshufd $0xcc: elements 0, 3, 0, 3 of the source: the mask is set in 0 and 2.
    assert_eq!(lines[0], expected[0]);
    assert_eq!(lines[1..3], ["t0 Plain 0x40 ffffffff", "t0 Plain 0x48 ffffffff"]);
    assert_eq!(lines[3..], expected[3..]);
}

#[test]
fn avx512_masks_scatter_and_compress() {
    if !processor_has("avx512_vbmi2") {
        return;
    }
    let lines = asm(
        "vpternlogd $255, %zmm0, %zmm0, %zmm0; mov $0xb, %eax; kmovw %eax, %k1; vmovdqu32 %zmm0, 64(%rdi){%k1}; \
         vmovdqu8 %xmm0, 128(%rdi){%k1}; vpcompressd %zmm0, 192(%rdi){%k1}; vpmovqb %zmm0, 256(%rdi){%k1}; \
         vmovdqu64 %zmm0, 320(%rdi); vpslld $31, %xmm0, %xmm2; vpsrld $27, %xmm2, %xmm2; \
         vpxor %xmm2, %xmm2, %xmm2; mov $3, %eax; vpinsrd $1, %eax, %xmm2, %xmm2; mov $-1, %eax; vpinsrd $3, %eax, %xmm2, %xmm2; \
         vpscatterdd %xmm0, 512(%rdi,%xmm2,4){%k1}; kmovw %k1, 600(%rdi); vzeroupper",
        &[],
    );
    let ones = |count: usize| "ff".repeat(count);
    let expected = [
        format!("t0 Plain 0x40 {}", ones(8)),
        format!("t0 Plain 0x4c {}", ones(4)),
        format!("t0 Plain 0x80 {}", ones(2)),
        format!("t0 Plain 0x83 {}", ones(1)),
        format!("t0 Plain 0xc0 {}", ones(12)),
        format!("t0 Plain 0x100 {}", ones(2)),
        format!("t0 Plain 0x103 {}", ones(1)),
        format!("t0 Plain 0x140 {}", ones(64)),
        format!("t0 Plain 0x200 {}", ones(4)),
        format!("t0 Plain 0x20c {}", ones(4)),
        format!("t0 Plain 0x1fc {}", ones(4)),
        "t0 Plain 0x258 0000".to_owned(),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn register_save_areas() {
    let lines = asm(
        "fxsave (%rdi); mov $7, %eax; xor %edx, %edx; xsave 1024(%rdi); fnstenv 4096(%rdi); fnsave 4160(%rdi)",
        &[],
    );
    assert_eq!(lines[0], "t0 Plain 0x0 512 bytes");
    assert!(lines[1].starts_with("t0 Plain 0x400 "), "{}", lines[1]);
    assert!(lines[2].starts_with("t0 Plain 0x1000 "), "{}", lines[2]);
    assert_eq!(lines[3], "t0 Plain 0x1040 108 bytes");
}
