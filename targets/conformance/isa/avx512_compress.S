//@ build: asm
//@ needs: avx512f avx512bw avx512vl avx512_vbmi2
// Compressing stores write as many elements as the mask has bits, packed from the operand's start.
#include "asm.h"
BEGIN
	vmovdqu64 zmm0, zmmword ptr pattern[rip]
	mov rax, 0x8000f00000a50f53
	kmovq k1, rax
	kxorq k2, k2, k2
	vcompressps zmmword ptr [rdi] {k1}, zmm0
	vcompresspd zmmword ptr [rdi + 0x40] {k1}, zmm0
	vpcompressd ymmword ptr [rdi + 0x81] {k1}, ymm0
	vpcompressq zmmword ptr [rdi + 0xc0] {k1}, zmm0
	vpcompressb zmmword ptr [rdi + 0x100] {k1}, zmm0
	vpcompressw zmmword ptr [rdi + 0x141] {k1}, zmm0
	vpcompressd zmmword ptr [rdi + 0x180] {k2}, zmm0   // nothing
	vpcompressb zmmword ptr [rdi + 0x1c0], zmm0        // no mask: all
	vzeroupper
	END
