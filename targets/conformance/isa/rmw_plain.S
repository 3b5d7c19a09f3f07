//@ build: asm
// Read-modify-writes without lock are plain stores of their result.
#include "asm.h"
BEGIN
	mov rax, 0x8123456789abcdef
	add dword ptr [rdi], 7
	add qword ptr [rdi + 8], rax
	adc byte ptr [rdi + 16], al
	sub word ptr [rdi + 18], ax
	sbb dword ptr [rdi + 20], eax
	inc dword ptr [rdi + 24]
	dec byte ptr [rdi + 28]
	not qword ptr [rdi + 32]
	neg dword ptr [rdi]
	and qword ptr [rdi + 32], 0xff0
	or byte ptr [rdi + 40], 0x18
	xor qword ptr [rdi + 8], rax
	xor qword ptr [rdi + 8], rax
	mov cl, 5
	shl qword ptr [rdi + 8], cl
	shr dword ptr [rdi + 8], 1
	sar qword ptr [rdi + 8], 3
	rol word ptr [rdi + 8], cl
	ror byte ptr [rdi + 8], 1
	rcl dword ptr [rdi + 8], 2
	rcr qword ptr [rdi + 8], cl
	shld qword ptr [rdi + 8], rax, cl
	shrd dword ptr [rdi + 8], eax, 4
	xadd qword ptr [rdi + 48], rax
	xadd byte ptr [rdi + 56], al
	add qword ptr [rdi + 0x7c], rax          // across a line
	xor cl, cl
	shl qword ptr [rdi + 8], cl              // by zero
	END
