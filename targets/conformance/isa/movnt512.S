//@ build: asm
//@ needs: avx512f
// Non-temporal stores of 64 bytes.
#include "asm.h"
BEGIN
	vmovdqu64 zmm0, zmmword ptr pattern[rip]
	vmovntdq zmmword ptr [rdi], zmm0
	vmovntps zmmword ptr [rdi + 0x40], zmm0
	vmovntpd zmmword ptr [rdi + 0x1000], zmm0
	sfence
	vzeroupper
	END
