//@ build: asm
//@ needs: avx2
// Every register keeps its value over a store to PM, vector registers with their upper halves too.
#include "asm.h"
BEGIN
	push rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbx, -16
	push rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbp, -24
	push r12
	.cfi_adjust_cfa_offset 8
	.cfi_offset r12, -32
	push r13
	.cfi_adjust_cfa_offset 8
	push r14
	.cfi_adjust_cfa_offset 8
	push r15
	.cfi_adjust_cfa_offset 8
	.set n, 0x1111
	.irp r, rax, rbx, rcx, rdx, rsi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	mov \r, n
	.set n, n + 0x1111
	.endr
	.irp r, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu ymm\r, ymmword ptr pattern[rip + \r]
	.endr
	mov qword ptr [rsp - 8], 0x77     // the red zone is the program's
	mov qword ptr [rsp - 128], 0x78
	.set o, 0
	.irp r, rax, rbx, rcx, rdx, rsi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	mov qword ptr [rdi + o], \r
	.set o, o + 8
	.endr
	.set o, 0x100
	.irp r, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu ymmword ptr [rdi + o], ymm\r
	.set o, o + 32
	.endr
	mov rax, qword ptr [rsp - 8]
	mov qword ptr [rdi + 0x400], rax
	mov rax, qword ptr [rsp - 128]
	mov qword ptr [rdi + 0x408], rax
	vzeroupper
	pop r15
	.cfi_adjust_cfa_offset -8
	pop r14
	.cfi_adjust_cfa_offset -8
	pop r13
	.cfi_adjust_cfa_offset -8
	pop r12
	.cfi_adjust_cfa_offset -8
	pop rbp
	.cfi_adjust_cfa_offset -8
	pop rbx
	.cfi_adjust_cfa_offset -8
	END
