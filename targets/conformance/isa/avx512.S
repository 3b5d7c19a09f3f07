//@ build: asm
//@ needs: avx512f avx512bw avx512vl avx512dq
// Stores of AVX-512: full, masked with every element width, truncating, extracting.
#include "asm.h"
BEGIN
	vmovdqu64 zmm0, zmmword ptr pattern[rip]
	vpaddb zmm17, zmm0, zmm0
	vmovdqu8 zmmword ptr [rdi + 3], zmm0
	vmovdqa64 zmmword ptr [rdi + 0x80], zmm17
	vmovups zmmword ptr [rdi + 0xfe0], zmm0           // across a page
	mov rax, 0xf0f0000180000ff1
	kmovq k1, rax
	kxorq k2, k2, k2
	kxnorq k3, k3, k3
	vmovdqu8 zmmword ptr [rdi + 0x100] {k1}, zmm0
	vmovdqu16 zmmword ptr [rdi + 0x140] {k1}, zmm0
	vmovdqu32 zmmword ptr [rdi + 0x180] {k1}, zmm17
	vmovdqu64 zmmword ptr [rdi + 0x1c0] {k1}, zmm17
	vmovaps zmmword ptr [rdi + 0x200] {k1}, zmm0
	vmovupd zmmword ptr [rdi + 0x241] {k1}, zmm0
	vmovdqu8 zmmword ptr [rdi + 0x280] {k2}, zmm0     // nothing
	vmovdqu8 zmmword ptr [rdi + 0x2c0] {k3}, zmm0     // all
	vmovdqu8 ymmword ptr [rdi + 0x300] {k1}, ymm0
	vmovdqu8 xmmword ptr [rdi + 0x340] {k1}, xmm17
	vmovss dword ptr [rdi + 0x380] {k1}, xmm0
	vmovss dword ptr [rdi + 0x384] {k2}, xmm0
	vmovsd qword ptr [rdi + 0x388] {k1}, xmm17
	vextracti32x4 xmmword ptr [rdi + 0x390] {k1}, zmm0, 2
	vextracti64x4 ymmword ptr [rdi + 0x3a0], zmm0, 1
	vextractf64x2 xmmword ptr [rdi + 0x3c0] {k1}, zmm0, 3
	vpmovqb qword ptr [rdi + 0x400], zmm0
	vpmovdb xmmword ptr [rdi + 0x410] {k1}, zmm0
	vpmovwb ymmword ptr [rdi + 0x420], zmm17
	vpmovqd ymmword ptr [rdi + 0x440] {k1}, zmm0
	vpmovusqw xmmword ptr [rdi + 0x460], zmm0
	vcvtps2ph ymmword ptr [rdi + 0x480], zmm0, 0
	vcvtps2ph ymmword ptr [rdi + 0x4a0] {k1}, zmm0, 0
	kmovq qword ptr [rdi + 0x4c0], k1
	kmovd dword ptr [rdi + 0x4c8], k1
	kmovw word ptr [rdi + 0x4cc], k1
	kmovb byte ptr [rdi + 0x4ce], k1
	vzeroupper
	END
