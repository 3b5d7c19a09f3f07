//@ build: asm
// setcc to PM for all sixteen conditions under several flag states, cmov between stores.
#include "asm.h"
.macro ALL
	.irp c, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	set\c byte ptr [rdi]
	lea rdi, [rdi + 1]
	.endr
.endm
BEGIN
	mov eax, 1
	cmp eax, 2
	ALL
	cmp eax, 1
	ALL
	mov eax, 0x80000000
	cmp eax, 1
	ALL
	mov edx, 7
	mov ecx, 9
	cmp edx, ecx
	mov dword ptr [rdi], edx
	cmovl edx, ecx
	mov dword ptr [rdi + 4], edx
	cmovge edx, dword ptr [rdi]
	mov dword ptr [rdi + 8], edx
	END
