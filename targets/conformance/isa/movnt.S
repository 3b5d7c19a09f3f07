//@ build: asm
//@ needs: avx2
// Non-temporal stores of every width up to 32 bytes, each group completed by a fence.
#include "asm.h"
BEGIN
	PATTERN xmm0
	mov rax, 0x0807060504030201
	movnti dword ptr [rdi], eax
	movnti qword ptr [rdi + 8], rax
	sfence
	movntdq xmmword ptr [rdi + 0x10], xmm0
	movntps xmmword ptr [rdi + 0x20], xmm0
	movntpd xmmword ptr [rdi + 0x30], xmm0
	mfence
	vmovdqu ymm1, ymmword ptr pattern[rip + 8]
	vmovntdq ymmword ptr [rdi + 0x40], ymm1
	vmovntps ymmword ptr [rdi + 0x60], ymm1
	vmovntpd xmmword ptr [rdi + 0x80], xmm1
	sfence
	mov dword ptr [rdi + 0xc0], eax
	movnti dword ptr [rdi + 0xc2], eax        // the same line, cached and non-temporal
	movnti dword ptr [rdi + 0xfe], eax        // across a line
	sfence
	vzeroupper
	END
