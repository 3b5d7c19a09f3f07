//@ build: asm
//@ needs: avx xsave
// xsave of the x87, SSE and AVX state into PM, all three in a known state.
#include "asm.h"
BEGIN
	fninit
	vmovdqu ymm0, ymmword ptr pattern[rip]
	vmovdqu ymm1, ymmword ptr pattern[rip + 16]
	.irp r, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vpxor xmm\r, xmm\r, xmm\r
	.endr
	mov eax, 7
	xor edx, edx
	xsave [rdi + 0x40]
	mov eax, 2
	xsave64 [rdi + 0x1000]
	mov eax, 4
	xsave [rdi + 0x2000]
	vzeroupper
	END
