//@ build: asm
// Stores of MMX: movd, movq, the non-temporal movntq and the masked maskmovq.
#include "asm.h"
.section .rodata
mask:	.byte 0x80, 0, 0xff, 0x80, 0x7f, 0, 0, 0x80
.text
BEGIN
	movq mm0, qword ptr pattern[rip]
	movq mm1, qword ptr mask[rip]
	movd dword ptr [rdi], mm0
	movq qword ptr [rdi + 8], mm0
	movq qword ptr [rdi + 0x3c], mm0        // across a line
	movntq qword ptr [rdi + 0x40], mm0
	add rdi, 0x80
	maskmovq mm0, mm1
	sfence
	sub rdi, 0x80
	movq rax, mm0
	mov qword ptr [rdi + 0x10], rax
	emms
	END
