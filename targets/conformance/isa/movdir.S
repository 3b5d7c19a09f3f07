//@ build: asm
//@ needs: movdiri movdir64b
// Direct stores: movdiri of 4 and 8 bytes, movdir64b of a whole line.
#include "asm.h"
BEGIN
	mov rax, 0x1020304050607080
	movdiri dword ptr [rdi], eax
	movdiri qword ptr [rdi + 8], rax
	lea rsi, [rdi + 0x40]
	movdir64b rsi, pattern[rip]
	lea rdx, [rdi + 0x80]
	movdir64b rdx, [rsi]
	sfence
	END
