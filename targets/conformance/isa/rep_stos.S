//@ build: asm
// String stores: single, repeated, of all widths, in both directions, longer than a page, and of count 0.
#include "asm.h"
BEGIN
	mov r8, rdi
	mov rax, 0x1122334455667788
	stosb
	stosw
	stosd
	stosq
	mov ecx, 5
	rep stosb
	mov ecx, 3
	rep stosw
	mov ecx, 4
	rep stosd
	mov ecx, 9
	rep stosq
	xor ecx, ecx
	rep stosb                         // nothing
	mov byte ptr [rdi], cl
	lea rdi, [r8 + 0x1003]
	mov ecx, 9000
	rep stosb                         // over several pages
	lea rdi, [r8 + 0x7ffc]
	mov ecx, 700
	mov eax, 0x99aabbcc
	std
	rep stosq                         // downwards, over a page border
	lea rdi, [r8 + 0x5007]
	mov ecx, 3
	rep stosb
	stosw
	cld
	END
