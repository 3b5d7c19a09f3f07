//@ build: asm
//@ needs: rdrand rdseed rdtscp
//@ pool: varies
// Instructions that differ from run to run natively: their results go to PM, so two recordings would show it.
#include "asm.h"
BEGIN
	rdrand rax
	setc byte ptr [rdi + 0x100]
	mov qword ptr [rdi], rax
	rdrand eax
	mov qword ptr [rdi + 8], rax
	rdrand ax
	mov word ptr [rdi + 16], ax
	rdrand r9
	mov qword ptr [rdi + 24], r9
	rdseed rax
	setc byte ptr [rdi + 0x101]
	mov qword ptr [rdi + 32], rax
	rdseed r10d
	mov qword ptr [rdi + 40], r10
	rdtsc
	mov dword ptr [rdi + 48], eax
	mov dword ptr [rdi + 52], edx
	rdtscp
	mov dword ptr [rdi + 56], eax
	mov dword ptr [rdi + 60], edx
	END
