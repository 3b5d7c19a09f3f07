//@ build: asm
//@ needs: clwb
// sfence and mfence always count, lfence never; a locked instruction on ordinary memory counts only
// where a flush or a non-temporal store is pending (rules 5 and 6).
#include "asm.h"
BEGIN
	sfence
	mfence
	lfence
	lock add dword ptr [rsp - 8], 0     // orders nothing
	mov dword ptr [rdi], 1
	lock add dword ptr [rsp - 8], 0     // a plain store alone is not pending
	clwb byte ptr [rdi]
	lock add dword ptr [rsp - 8], 0     // this one counts
	lock add dword ptr [rsp - 8], 0     // and this not
	mov eax, 9
	movnti dword ptr [rdi + 64], eax
	xchg dword ptr [rsp - 8], eax       // counts
	mov ecx, 5
	movnti dword ptr [rdi + 64], ecx
	lock inc dword ptr [rdi + 128]      // a read-modify-write of PM: fence and store
	lock or byte ptr [rsp - 8], 0       // orders nothing: that was the fence
	clflush byte ptr [rdi]
	xadd dword ptr [rsp - 8], eax       // not locked
	lock cmpxchg dword ptr [rsp - 8], ecx
	clwb byte ptr [rsp - 64]
	lock dec dword ptr [rsp - 8]        // a flush of ordinary memory is a flush
	lfence
	sfence
	END
