//@ build: asm
// The carry travels over stores to PM: a 512-bit addition whose limbs are stored one by one.
#include "asm.h"
BEGIN
	mov rax, -1
	lea rsi, pattern[rip]
	mov ecx, 8
	clc
1:	mov rdx, qword ptr [rsi]
	adc rdx, rax
	mov qword ptr [rdi], rdx
	lea rsi, [rsi + 8]
	lea rdi, [rdi + 8]
	dec ecx
	jnz 1b
	setc byte ptr [rdi]
	// The same with direction, overflow, sign, parity and auxiliary carry in play.
	mov al, 0x7f
	add al, 1
	mov byte ptr [rdi + 1], al
	seto byte ptr [rdi + 2]
	mov al, 0x0f
	add al, 1
	mov byte ptr [rdi + 3], 3
	lahf
	mov byte ptr [rdi + 4], ah
	stc
	mov dword ptr [rdi + 8], 0x55
	rcl dword ptr [rdi + 8], 1
	mov qword ptr [rdi + 16], rcx
	adc qword ptr [rdi + 16], 0
	cmp eax, eax
	mov byte ptr [rdi + 24], 1
	je 2f
	mov byte ptr [rdi + 25], 2
2:	mov byte ptr [rdi + 26], 3
	jne 3f
	mov byte ptr [rdi + 27], 4
3:	END
