//@ build: asm
//@ cflags: -no-pie
//@ compare: no-context
// enter with nesting level 0 on a stack in PM: it pushes rbp (enter_nested has the other levels).
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
	mov ebp, 0x4242
	lea rsp, [rdi + 0x2000]
	enter 0x20, 0
	mov qword ptr [rsp], 1
	leave
	mov rsp, rbx
	pop rbp
	.cfi_def_cfa rsp, 16
	.cfi_restore rbp
	pop rbx
	.cfi_def_cfa rsp, 8
	.cfi_restore rbx
	END
