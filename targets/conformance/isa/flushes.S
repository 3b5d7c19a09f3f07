//@ build: asm
//@ needs: clflushopt clwb
// The three flushes and the cldemote hint, of lines in PM and of ordinary memory (rule 7).
#include "asm.h"
BEGIN
	mov dword ptr [rdi], 1
	clflush byte ptr [rdi]
	mov dword ptr [rdi + 0x45], 2
	clflushopt byte ptr [rdi + 0x45]
	sfence
	mov dword ptr [rdi + 0x1000], 3
	clwb byte ptr [rdi + 0x103f]
	clwb byte ptr [rdi + 0x1000]
	sfence
	cldemote byte ptr [rdi + 0x1000]
	clflush byte ptr [rsp]
	clflushopt byte ptr [rsp - 8]
	clwb byte ptr [rsp]
	sfence
	clwb byte ptr [rdi + 0x3000]      // a clean line
	mov rax, 3
	clwb byte ptr [rdi + rax*8 + 0x1000]
	mfence
	END
