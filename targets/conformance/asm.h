/* Frame of an assembly program: BEGIN opens `long body(char *pm)` with the pool in rdi, END returns 0. */
.intel_syntax noprefix
.section .note.GNU-stack,"",@progbits
.text
.macro BEGIN
	.globl body
	.type body, @function
body:
	.cfi_startproc
.endm
.macro END
	xor eax, eax
	ret
	.cfi_endproc
	.size body, .-body
.endm
/* Fills xmm0 (and with it the low part of ymm0/zmm0) with the bytes of a constant pattern. */
.macro PATTERN reg
	movdqu \reg, xmmword ptr pattern[rip]
.endm
.section .rodata
	.balign 64
pattern:
	.set i, 1
	.rept 64
	.byte i
	.set i, i + 1
	.endr
.text
