//@ build: asm
// loop, loope, loopne and jrcxz around stores to PM: they read rcx and flags and have short reach.
#include "asm.h"
BEGIN
	mov ecx, 5
1:	mov byte ptr [rdi + rcx], cl
	loop 1b
	mov ecx, 10
2:	mov dword ptr [rdi + rcx*4 + 0x40], ecx
	cmp ecx, 7
	loopne 2b
	sete byte ptr [rdi]
	mov ecx, 4
	xor eax, eax
3:	mov word ptr [rdi + rcx*2 + 0x80], cx
	test eax, eax
	loope 3b
	jrcxz 4f
	mov byte ptr [rdi + 0x100], 1
4:	mov byte ptr [rdi + 0x101], 2
	mov ecx, 1
	jrcxz 5f
	mov byte ptr [rdi + 0x102], 3
5:	mov rax, 0x100000000
	mov rcx, rax
	jecxz 6f
	mov byte ptr [rdi + 0x103], 4
6:	END
