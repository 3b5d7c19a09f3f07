//@ build: asm
//@ cflags: -no-pie
//@ compare: exact lengths
//@ pool: varies
//@ refuses: unsupported instruction
// enter with nesting copies the outer frame pointers, which are addresses in the pool.
#include "asm.h"
BEGIN
	push rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbx, -16
	push rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbp, -24
	mov rbx, rsp
	.cfi_def_cfa_register rbx
	lea rsp, [rdi + 0x2000]
	lea rbp, [rdi + 0x1800]
	enter 16, 1
	enter 16, 2
	enter 32, 3
	mov qword ptr [rsp + 8], 7
	leave
	leave
	leave
	mov rsp, rbx
	pop rbp
	.cfi_def_cfa rsp, 16
	.cfi_restore rbp
	pop rbx
	.cfi_def_cfa rsp, 8
	.cfi_restore rbx
	END
