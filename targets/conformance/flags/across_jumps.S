//@ build: asm
//@ cflags: -no-pie
// Flags that live across indirect jumps, indirect calls and returns, as compilers make them (a compare hoisted before a jump
// table). The targets lie 64 KiB apart as well as side by side: those that share a slot of a lookup table are met in turn.
#include "asm.h"
// A target notes carry, zero, sign, overflow and parity, then goes back.
.macro TARGET n
	.balign 64
target\n:
	.cfi_startproc
	setc byte ptr [rdi]
	setz byte ptr [rdi + 1]
	sets byte ptr [rdi + 2]
	seto byte ptr [rdi + 3]
	setp byte ptr [rdi + 4]
	lea rdi, [rdi + 8]
	ret
	.cfi_endproc
.endm
	TARGET 0
	TARGET 1
	.balign 65536
	TARGET 2
	TARGET 3
	.balign 65536
	TARGET 4
	TARGET 5
	.section .data.rel.ro, "aw"
	.balign 8
table:	.quad target0, target1, target2, target3, target4, target5, target0, target2, target4, target0, target2, target4
	.text
// Calls every target of the table with the flags of `cmp left, right`.
.macro ROUND how, left, right
	xor ecx, ecx
7:	lea rsi, table[rip]
	mov rdx, qword ptr [rsi + rcx*8]
	mov eax, \left
	lea r8, [rcx + 1]
	cmp eax, \right
	\how
	seta byte ptr [rdi]               // flags came back over the ret
	lea rdi, [rdi + 1]
	mov rcx, r8
	cmp rcx, 12
	jb 7b
.endm
.macro BY_CALL
	call rdx
.endm
.macro BY_MEMORY
	call qword ptr [rsi + rcx*8]
.endm
.macro BY_JUMP
	call 2f
	jmp 3f
2:	.cfi_adjust_cfa_offset 8
	jmp rdx
	.cfi_adjust_cfa_offset -8
3:
.endm
// A compiler's switch: the compare is hoisted before the jump through a table, each case begins with its conditional jump.
.macro CASE n
case\n:	jne 8f
	mov dword ptr [rdi], \n
	jmp 9f
8:	mov dword ptr [rdi], 100 + \n
	jmp 9f
	.balign 32
.endm
	.section .data.rel.ro, "aw"
cases:	.quad case0, case1, case2, case3
	.text
BEGIN
	xor ecx, ecx
6:	mov eax, ecx
	shr eax, 1
	and eax, 3
	mov qword ptr [rsp - 8], rcx
	test cl, 1
	mov qword ptr [rsp - 16], rax
	jmp qword ptr cases[rax*8]
	CASE 0
	CASE 1
	CASE 2
	CASE 3
9:	lea rdi, [rdi + 4]
	inc ecx
	cmp ecx, 24
	jb 6b
	.irp how, BY_CALL, BY_MEMORY, BY_JUMP
	ROUND \how, 1, 1
	ROUND \how, 1, 2
	ROUND \how, 0x80000000, 1
	.endr
	END
