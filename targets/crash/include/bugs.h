/* Which bugs are built in: the bits of BUGS, by the numbers of the bugs. None: the correct twin. BUG=3 stands for that bug alone. */
#ifndef BUGS_H
#define BUGS_H
#ifndef BUGS
#ifndef BUG
#define BUG 0
#endif
#define BUGS (1 << BUG)
#endif
#define HAS_BUG(number) ((BUGS) >> (number) & 1)
#endif
