//@ build: c
//@ cflags: -Os -pie -fPIE -fcf-protection=full -fstack-protector-all -fno-plt
// One program in several builds: calls, recursion, function pointers, qsort with a comparator that writes PM.
#include "built.h"
