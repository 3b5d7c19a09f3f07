//@ build: asm
// String copies: DRAM to PM, PM to PM, overlapping (which replicates), both directions, long, and of count 0.
#include "asm.h"
BEGIN
	mov r8, rdi
	lea rsi, pattern[rip]
	movsb
	movsw
	movsd
	movsq
	lea rsi, pattern[rip]
	mov ecx, 33
	rep movsb
	lea rsi, pattern[rip]
	mov ecx, 8
	rep movsq
	xor ecx, ecx
	rep movsd                         // nothing
	mov rsi, r8
	lea rdi, [r8 + 0x20]
	mov ecx, 0x1800
	rep movsb                         // overlapping and longer than a page
	lea rsi, [r8 + 0x17f8]
	lea rdi, [r8 + 0x4ff9]
	mov ecx, 600
	std
	rep movsq                         // downwards
	lea rsi, [r8 + 0x103]
	lea rdi, [r8 + 0x107]
	mov ecx, 70
	rep movsb
	movsw
	cld
	lea rsi, [r8 + 0x40]
	lea rdi, [rsp - 0x100]            // PM to DRAM: no event
	mov ecx, 16
	rep movsb
	END
