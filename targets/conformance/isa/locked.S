//@ build: asm
// Locked read-modify-writes of PM: each is a fence and a store. xchg with memory locks by itself.
#include "asm.h"
BEGIN
	mov rax, 0x0123456789abcdef
	lock add dword ptr [rdi], 7
	lock add qword ptr [rdi + 8], rax
	lock sub byte ptr [rdi + 16], al
	lock inc word ptr [rdi + 18]
	lock dec dword ptr [rdi + 20]
	lock not qword ptr [rdi + 24]
	lock neg qword ptr [rdi + 8]
	lock and qword ptr [rdi + 24], rax
	lock or byte ptr [rdi + 32], 0x81
	lock xor dword ptr [rdi + 36], eax
	stc
	lock adc dword ptr [rdi + 40], 1
	stc
	lock sbb qword ptr [rdi + 48], 1
	mov ecx, 55
	lock xadd dword ptr [rdi], ecx
	mov dword ptr [rdi + 64], ecx
	xchg qword ptr [rdi + 72], rax
	xchg byte ptr [rdi + 80], al
	xchg word ptr [rdi + 82], cx
	lock xchg dword ptr [rdi + 84], ecx
	mov dword ptr [rdi + 88], ecx
	END
