//@ build: asm
// fxsave (512 bytes) and stmxcsr. The registers are set first: what the C library left there is not our business.
#include "asm.h"
BEGIN
	fninit
	movdqu xmm0, xmmword ptr pattern[rip]
	.irp r, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	pxor xmm\r, xmm\r
	.endr
	fxsave [rdi]
	fxsave64 [rdi + 0x400]
	stmxcsr dword ptr [rdi + 0x800]
	END
