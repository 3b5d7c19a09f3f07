//@ build: cxx
//@ cflags: -O1 -static-libstdc++ -static-libgcc
// C++ exceptions through frames that write PM: destructors, rethrow, catch by type, exceptions out of a constructor.
#include "pm.h"
#include <stdexcept>

static char *pm;
static int next;

struct Guard {
	int id;
	explicit Guard(int n) : id(n) { PUT(int, pm + 4 * next++, id); }
	~Guard() { PUT(int, pm + 4 * next++, -id); pm_persist(pm); }
};
struct Broken {
	Guard inner{100};
	Broken() { throw 7; }
};

static void __attribute__((noinline)) deep(int n)
{
	Guard g(n);
	if (n == 0)
		throw std::runtime_error("bottom");
	deep(n - 1);
	PUT(int, pm + 4000, n);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	for (int round = 0; round < 3; round++) {
		try {
			try {
				deep(4 + round);
			} catch (const std::logic_error &) {
				return 1;
			} catch (...) {
				PUT(int, pm + 4 * next++, 1000);
				throw;
			}
		} catch (const std::runtime_error &) {
			PUT(int, pm + 4 * next++, 2000);
		}
		try {
			Broken b;
		} catch (int n) {
			PUT(int, pm + 4 * next++, n);
		}
	}
	return 0;
}
