//@ build: asm
// Stores of the x87 unit. The environment is stored right after fninit: it holds no instruction pointer then.
#include "asm.h"
.section .rodata
value:	.double 1234.75
.text
BEGIN
	fninit
	fnstenv [rdi + 0x100]
	fnsave [rdi + 0x200]
	fldpi
	fst dword ptr [rdi]
	fst qword ptr [rdi + 8]
	fstp tbyte ptr [rdi + 0x10]
	fld qword ptr value[rip]
	fist word ptr [rdi + 0x20]
	fist dword ptr [rdi + 0x24]
	fld st(0)
	fistp qword ptr [rdi + 0x28]
	fld st(0)
	fistp word ptr [rdi + 0x30]
	fld st(0)
	fistp dword ptr [rdi + 0x34]
	fld st(0)
	fisttp word ptr [rdi + 0x38]
	fld st(0)
	fisttp dword ptr [rdi + 0x3c]
	fld st(0)
	fisttp qword ptr [rdi + 0x40]
	fld st(0)
	fbstp tbyte ptr [rdi + 0x4b]
	fld st(0)
	fstp dword ptr [rdi + 0x7e]      // across a line
	fstp tbyte ptr [rdi + 0xffb]     // across a page
	fnstcw word ptr [rdi + 0x60]
	fnstsw word ptr [rdi + 0x62]
	fninit
	END
