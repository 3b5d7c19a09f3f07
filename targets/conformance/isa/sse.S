//@ build: asm
// Stores of the SSE families.
#include "asm.h"
BEGIN
	PATTERN xmm0
	movdqu xmm9, xmmword ptr pattern[rip + 16]
	movaps xmmword ptr [rdi], xmm0
	movups xmmword ptr [rdi + 17], xmm9
	movapd xmmword ptr [rdi + 48], xmm0
	movupd xmmword ptr [rdi + 0x41], xmm0
	movdqa xmmword ptr [rdi + 0x60], xmm9
	movdqu xmmword ptr [rdi + 0xff8], xmm0      // across a page
	movlps qword ptr [rdi + 0x100], xmm0
	movhps qword ptr [rdi + 0x108], xmm0
	movlpd qword ptr [rdi + 0x110], xmm9
	movhpd qword ptr [rdi + 0x118], xmm9
	movss dword ptr [rdi + 0x120], xmm0
	movsd qword ptr [rdi + 0x128], xmm0
	movd dword ptr [rdi + 0x130], xmm9
	movq qword ptr [rdi + 0x138], xmm9
	pextrb byte ptr [rdi + 0x140], xmm0, 5
	pextrw word ptr [rdi + 0x142], xmm0, 3
	pextrd dword ptr [rdi + 0x144], xmm0, 2
	pextrq qword ptr [rdi + 0x148], xmm0, 1
	extractps dword ptr [rdi + 0x150], xmm9, 3
	movlps qword ptr [rdi + 0x13c], xmm9        // across a line
	END
