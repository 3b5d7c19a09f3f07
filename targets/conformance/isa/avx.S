//@ build: asm
//@ needs: avx2
// Stores of the AVX and AVX2 families, the masked ones included: masked-out bytes are not written.
#include "asm.h"
.section .rodata
masks:	.long -1, 0, -1, -1, 0, 0, 0, -1
maskq:	.quad -1, 0, 0, -1
none:	.quad 0, 0, 0, 0
.text
BEGIN
	vmovdqu ymm0, ymmword ptr pattern[rip]
	vmovdqu ymm1, ymmword ptr pattern[rip + 32]
	vmovups ymmword ptr [rdi + 1], ymm0
	vmovaps ymmword ptr [rdi + 64], ymm1
	vmovdqa ymmword ptr [rdi + 96], ymm0
	vmovdqu xmmword ptr [rdi + 128], xmm1
	vmovapd xmmword ptr [rdi + 144], xmm0
	vmovss dword ptr [rdi + 160], xmm0
	vmovsd qword ptr [rdi + 168], xmm0
	vmovlps qword ptr [rdi + 176], xmm0
	vmovhps qword ptr [rdi + 184], xmm0
	vextractf128 xmmword ptr [rdi + 192], ymm0, 1
	vextracti128 xmmword ptr [rdi + 208], ymm1, 1
	vpextrb byte ptr [rdi + 224], xmm0, 7
	vpextrw word ptr [rdi + 226], xmm0, 1
	vpextrd dword ptr [rdi + 228], xmm0, 1
	vpextrq qword ptr [rdi + 232], xmm0, 1
	vextractps dword ptr [rdi + 240], xmm0, 2
	vmovdqu ymm2, ymmword ptr masks[rip]
	vmovdqu ymm3, ymmword ptr maskq[rip]
	vmovdqu ymm4, ymmword ptr none[rip]
	vmaskmovps ymmword ptr [rdi + 0x200], ymm2, ymm0
	vmaskmovpd ymmword ptr [rdi + 0x240], ymm3, ymm0
	vpmaskmovd ymmword ptr [rdi + 0x281], ymm2, ymm1
	vpmaskmovq ymmword ptr [rdi + 0x2c1], ymm3, ymm1
	vpmaskmovd xmmword ptr [rdi + 0x300], xmm2, xmm1
	vmaskmovps ymmword ptr [rdi + 0x340], ymm4, ymm0   // nothing
	vmaskmovps ymmword ptr [rdi + 0xff0], ymm2, ymm0   // across a page
	vmovdqu ymmword ptr [rdi + 0x1ff8], ymm1
	vzeroupper
	END
