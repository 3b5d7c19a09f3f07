//@ build: asm
// bts/btr/btc with a register reach far beyond the operand, forwards and backwards; locked ones as well.
#include "asm.h"
BEGIN
	lea rsi, [rdi + 0x4000]
	mov rax, 100003
	bts qword ptr [rsi], rax
	setc byte ptr [rdi]
	bts qword ptr [rsi], rax
	setc byte ptr [rdi + 1]
	mov rax, -70001
	bts qword ptr [rsi], rax
	btc qword ptr [rsi], rax
	mov eax, -1
	bts dword ptr [rsi], eax
	mov eax, 12345
	btc dword ptr [rsi + 4], eax
	mov ax, -300
	bts word ptr [rsi], ax
	mov ax, 999
	bts word ptr [rsi + 2], ax
	btr word ptr [rsi + 2], ax
	bts dword ptr [rsi], 31
	bts qword ptr [rsi + 8], 63
	btr qword ptr [rsi + 8], 63
	btc word ptr [rsi + 16], 77
	mov rcx, -33
	lock bts qword ptr [rsi + 0x100], rcx
	lock btr dword ptr [rsi + 0x100], ecx
	lock btc qword ptr [rsi + 0x100], 5
	bt qword ptr [rsi], rax                 // only looks
	setc byte ptr [rdi + 2]
	END
