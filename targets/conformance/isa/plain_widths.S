//@ build: asm
// Plain stores of 1 to 8 bytes, immediates and registers, all addressing forms, aligned and not.
#include "asm.h"
BEGIN
	mov rax, 0x1122334455667788
	mov byte ptr [rdi], al
	mov word ptr [rdi + 2], ax
	mov dword ptr [rdi + 4], eax
	mov qword ptr [rdi + 8], rax
	mov byte ptr [rdi + 16], 0x5a
	mov word ptr [rdi + 18], 0x1234
	mov dword ptr [rdi + 20], 0x12345678
	mov qword ptr [rdi + 24], -2
	mov rcx, 3
	mov byte ptr [rdi + rcx + 64], al
	mov word ptr [rdi + rcx*2 + 64], ax
	mov dword ptr [rdi + rcx*4 + 0x100], eax
	mov qword ptr [rdi + rcx*8 - 8], rax
	lea rdx, [rdi + 0x1000]
	mov qword ptr [rdx - 4], rax           // across a page
	mov dword ptr [rdi + 62], eax          // across a line
	mov word ptr [rdi + 127], ax
	mov r8, rdi
	mov qword ptr [r8 + 0x200], 77
	mov r9, rax
	mov r10, rdi
	mov byte ptr [r10 + 0x300], r9b
	mov word ptr [r10 + 0x302], r9w
	mov dword ptr [r10 + 0x304], r9d
	mov qword ptr [r10 + 0x308], r9
	movbe qword ptr [rdi + 0x310], rax
	movbe dword ptr [rdi + 0x318], eax
	movbe word ptr [rdi + 0x31c], ax
	lea r11, [rdi + 0x400]
	mov rsi, -0x10
	mov qword ptr [r11 + rsi*4], rax
	mov word ptr [rdi + 0x410], cs         // a segment register
	END
