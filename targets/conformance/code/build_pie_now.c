//@ build: c
//@ cflags: -O0 -pie -fPIE -Wl,-z,now
// One program in several builds: calls, recursion, function pointers, qsort with a comparator that writes PM.
#include "built.h"
