//@ build: asm
//@ needs: cx16
// Compare-and-exchange of all widths, locked and not, won and lost. A lost one writes the old value back.
#include "asm.h"
BEGIN
	push rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbx, -16
	mov rcx, 0x1111222233334444
	xor eax, eax
	cmpxchg byte ptr [rdi], cl
	xor eax, eax
	cmpxchg word ptr [rdi + 2], cx
	xor eax, eax
	cmpxchg dword ptr [rdi + 4], ecx
	xor eax, eax
	cmpxchg qword ptr [rdi + 8], rcx
	mov eax, 99
	cmpxchg qword ptr [rdi + 8], rcx        // lost
	mov qword ptr [rdi + 0x40], rax
	xor eax, eax
	lock cmpxchg dword ptr [rdi + 0x10], ecx
	lock cmpxchg dword ptr [rdi + 0x10], edi  // lost
	mov dword ptr [rdi + 0x44], eax
	xor eax, eax
	xor edx, edx
	mov ebx, 0xb0b
	mov ecx, 0xc0c
	cmpxchg8b qword ptr [rdi + 0x18]
	lock cmpxchg8b qword ptr [rdi + 0x18]     // lost
	setz byte ptr [rdi + 0x48]
	lock cmpxchg8b qword ptr [rdi + 0x18]     // won
	setz byte ptr [rdi + 0x49]
	xor eax, eax
	xor edx, edx
	cmpxchg16b xmmword ptr [rdi + 0x20]
	setz byte ptr [rdi + 0x4a]
	lock cmpxchg16b xmmword ptr [rdi + 0x20]  // lost
	setz byte ptr [rdi + 0x4b]
	inc rbx
	lock cmpxchg16b xmmword ptr [rdi + 0x20]
	setz byte ptr [rdi + 0x4c]
	pop rbx
	.cfi_def_cfa rsp, 8
	.cfi_restore rbx
	END
