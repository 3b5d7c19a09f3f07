//@ build: c
//@ cflags: -O2 -static -no-pie
// One program in several builds: calls, recursion, function pointers, qsort with a comparator that writes PM.
#include "built.h"
