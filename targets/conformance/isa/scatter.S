//@ build: asm
//@ needs: avx512f avx512vl
// Scatters: one event per enabled element, in element order; of two elements at one address the later wins.
#include "asm.h"
.section .rodata
	.balign 64
idx32:	.long 0, 5, -3, 5, 100, 64, 1, 2, 900, 31, 32, 33, 7, 7, 7, 8
idx64:	.quad 3, -2, 3, 511, 1000, 9, 12, 12
.text
BEGIN
	vmovdqu64 zmm0, zmmword ptr pattern[rip]
	vmovdqu64 zmm1, zmmword ptr idx32[rip]
	vmovdqu64 zmm2, zmmword ptr idx64[rip]
	lea rsi, [rdi + 0x1000]
	mov eax, 0xbeef
	kmovw k1, eax
	vscatterdps dword ptr [rsi + zmm1*4] {k1}, zmm0
	kmovw k1, eax
	vpscatterdd dword ptr [rsi + zmm1*8 + 0x1000] {k1}, zmm0
	kmovw k1, eax
	vscatterqpd qword ptr [rsi + zmm2*8 + 0x4000] {k1}, zmm0
	kmovw k1, eax
	vpscatterqq qword ptr [rsi + zmm2 + 0x8000] {k1}, zmm0
	kmovw k1, eax
	vpscatterdq qword ptr [rsi + ymm1*8 + 0x9000] {k1}, zmm0
	kmovw k1, eax
	vpscatterqd dword ptr [rsi + zmm2*4 + 0xa000] {k1}, ymm0
	kmovw k1, eax
	vscatterdps dword ptr [rsi + xmm1*4 + 0xc000] {k1}, xmm0
	kxorw k1, k1, k1
	vscatterdps dword ptr [rsi + zmm1*4] {k1}, zmm0     // nothing
	vzeroupper
	END
