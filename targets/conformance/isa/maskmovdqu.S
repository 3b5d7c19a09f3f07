//@ build: asm
//@ needs: avx
// maskmovdqu: the mask's top bits choose bytes, rdi is implicit; the empty mask writes nothing.
#include "asm.h"
.section .rodata
mask:	.byte 0x80, 0xff, 0, 0x80, 0, 0, 0x81, 0x82, 0x83, 0, 0x7f, 0, 0, 0, 0, 0x80
.text
BEGIN
	PATTERN xmm0
	movdqu xmm1, xmmword ptr mask[rip]
	pxor xmm2, xmm2
	pcmpeqb xmm3, xmm3
	maskmovdqu xmm0, xmm1
	add rdi, 0x35
	maskmovdqu xmm0, xmm1             // across a line
	sfence
	add rdi, 0x40
	maskmovdqu xmm0, xmm2             // nothing
	maskmovdqu xmm0, xmm3             // all
	add rdi, 0x40
	vmaskmovdqu xmm0, xmm1
	sfence
	END
