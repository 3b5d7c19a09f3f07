//@ build: asm
//@ cflags: -no-pie
// A stack that lies in PM: push, call, pushf, enter, pop to memory and leave store through rsp.
#include "asm.h"
	.type callee, @function
callee:
	.cfi_startproc
	push 0x77
	.cfi_adjust_cfa_offset 8
	pop rax
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size callee, .-callee
BEGIN
	push rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbp, -16
	mov rbp, rsp
	.cfi_def_cfa_register rbp
	mov r8, rdi
	lea rsp, [rdi + 0x2000]
	mov rax, 0x0102030405060708
	push rax
	push 5
	push -1
	push word ptr 0x1234
	push ax
	push qword ptr [rsp + 4]
	xor ecx, ecx
	cmp ecx, 1
	pushfq
	popfq
	pop qword ptr [r8 + 0x100]
	pop word ptr [r8 + 0x108]
	pop word ptr [r8 + 0x10a]
	pop rcx
	pop qword ptr [rsp + 0x18]
	lea rsp, [r8 + 0x3000]
	call callee
	lea rdx, callee[rip]
	call rdx
	push rdx
	call qword ptr [rsp]
	mov qword ptr [rsp], 9
	lea rsp, [r8 + 0x1004]
	push rax                         // across a page
	mov rsp, rbp
	pop rbp
	.cfi_def_cfa rsp, 8
	END
