//@ build: asm
//@ compare: exact no-context
// Control flow that a return-address stack predicts wrongly: push+ret, call+pop, ret with an immediate,
// a jump into the middle of an instruction. Without call-frame information, so paths are not compared.
#include "asm.h"
	.globl body
body:
	lea rax, 1f[rip]
	push rax
	ret                               // a jump
	mov dword ptr [rdi + 0x500], 1
1:	mov dword ptr [rdi], 1
	call 2f
2:	pop rax                           // where am I
	mov dword ptr [rdi + 4], 2
	push 5
	push 6
	call 3f
	mov dword ptr [rdi + 8], 3
	lea rax, 5f[rip]+2
	jmp rax
5:	.byte 0x66, 0xb8                  // mov ax, imm16: entered behind it, at the next two bytes
	nop
	nop
	mov dword ptr [rdi + 12], 4
	call 6f
	mov dword ptr [rdi + 0x504], 1
7:	mov dword ptr [rdi + 16], 5
	xor eax, eax
	ret
3:	mov dword ptr [rdi + 20], 6
	ret 16
6:	lea rax, 7b[rip]
	mov qword ptr [rsp], rax          // a changed return address
	ret
