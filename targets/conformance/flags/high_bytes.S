//@ build: asm
// ah, bh, ch and dh as sources of stores: they cannot be encoded together with r8–r15.
#include "asm.h"
BEGIN
	push rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbx, -16
	mov eax, 0x1234
	mov ebx, 0x5678
	mov ecx, 0x9abc
	mov edx, 0xdef0
	mov byte ptr [rdi], ah
	mov byte ptr [rdi + 1], bh
	mov byte ptr [rdi + 2], ch
	mov byte ptr [rdi + 3], dh
	add byte ptr [rdi], bh
	xor byte ptr [rdi + 1], ah
	xchg byte ptr [rdi + 2], dh
	mov byte ptr [rdi + 4], dh
	lock xadd byte ptr [rdi + 3], ch
	mov byte ptr [rdi + 5], ch
	mov al, byte ptr [rdi + 5]
	cmpxchg byte ptr [rdi + 5], bh
	mov byte ptr [rdi + rax + 6], ah
	mov byte ptr [rbx + rdi], ah
	mov byte ptr [rdi + rcx], dh
	pop rbx
	.cfi_def_cfa rsp, 8
	.cfi_restore rbx
	END
