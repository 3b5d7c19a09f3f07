// A function for each instruction form. Each is called three times with a pool, so that instructions that store there are instrumented; then
// the program writes the code that the engine made of it to standard output, as it finds it in its own memory: its address, and the bytes
// from BEFORE bytes before it.
	.intel_syntax noprefix
	.set BRANCH_TABLE, 0x71800000    // layout.rs of the probe
	.set BEFORE, 512
	.set BYTES, 1536

	.text
	.globl _start
_start:
	.fill BEFORE, 1, 0x90      // translated as they are: there is code in front of the first form's
	mov rdi, [rsp + 16]
	mov esi, 0x42              // O_RDWR | O_CREAT
	mov edx, 0600
	mov eax, 2                 // open
	syscall
	mov r12d, eax
	mov edi, eax
	mov esi, 4096
	mov eax, 77                // ftruncate
	syscall
	xor edi, edi
	mov esi, 4096
	mov edx, 3                 // PROT_READ | PROT_WRITE
	mov r10d, 1                // MAP_SHARED
	mov r8d, r12d
	xor r9d, r9d
	mov eax, 9                 // mmap
	syscall
	mov rbp, rax
	lea rbx, forms[rip]
.Lform:
	mov r13, [rbx]
	test r13, r13
	jz .Ldone
	mov r14d, 3
.Lagain:
	mov rdi, rbp
	mov ecx, 2
	mov eax, 5
	call r13
	dec r14d
	jnz .Lagain
	movzx eax, r13w
	mov r15, [rax * 8 + BRANCH_TABLE]
	mov address[rip], r15
	mov edi, 1
	lea rsi, address[rip]
	mov edx, 8
	mov eax, 1                 // write
	syscall
	mov edi, 1
	lea rsi, [r15 - BEFORE]
	mov edx, BYTES
	mov eax, 1
	syscall
	add rbx, 8
	jmp .Lform
.Ldone:
	xor edi, edi
	mov eax, 231               // exit_group
	syscall

	.bss
	.balign 8
address:
	.skip 8

	.data
	.balign 8
forms:
	.macro FORM body:vararg
	.text
	.balign 16
form_\@:
	\body
	ret
	.data
	.quad form_\@
	.endm

	FORM mov rax, qword ptr forms[rip]
	FORM mov byte ptr [rdi], al
	FORM mov dword ptr [rdi + 8], 7
	FORM mov qword ptr [rdi + rcx * 8], rax
	FORM movaps xmmword ptr [rdi + 32], xmm0
	FORM movnti qword ptr [rdi + 64], rax
	FORM add qword ptr [rdi + 72], rax
	FORM xchg qword ptr [rdi + 80], rax
	FORM lock xadd qword ptr [rdi + 88], rax
	FORM lock cmpxchg qword ptr [rdi + 96], rcx
	FORM rep stosb
	FORM clflush byte ptr [rdi]
	FORM sfence
	FORM mfence
	.macro COMPARED
	cmp eax, 4
	mov word ptr [rdi + 104], ax
	setb al
	.endm
	FORM COMPARED
	.macro TAKEN
	cmp eax, 4
	ja 1f
	nop
1:
	.endm
	FORM TAKEN
	.data
	.quad 0
