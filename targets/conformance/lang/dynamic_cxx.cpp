//@ build: cxx
//@ cflags: -O2
// A dynamically linked C++ program: virtual calls, std::string and std::sort on data in PM, static constructors.
#include "pm.h"
#include <algorithm>
#include <atomic>
#include <new>
#include <string>

static char *pm;

struct Shape { virtual ~Shape() = default; virtual int area() const = 0; };
struct Square : Shape { int a; explicit Square(int n) : a(n) {} int area() const override { return a * a; } };
struct Strip : Shape { int a; explicit Strip(int n) : a(n) {} int area() const override { return a; } };

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 8192);
	const Shape *shapes[] = { new Square(5), new Strip(3), new Square(2) };
	int *out = reinterpret_cast<int *>(pm);
	for (const Shape *s : shapes)
		PUT(int, out++, s->area());
	int *numbers = reinterpret_cast<int *>(pm + 4096);
	unsigned x = 12345;
	for (int i = 0; i < 50; i++)
		PUT(int, numbers + i, (x = x * 1103515245u + 12345u) >> 16);
	std::sort(numbers, numbers + 50);
	CHECK(std::is_sorted(numbers, numbers + 50));
	std::string text = "words that are longer than the small buffer of a string";
	std::copy(text.begin(), text.end(), pm + 1024);
	auto *counter = new (pm + 2048) std::atomic<long>(5);
	counter->fetch_add(3);
	counter->store(9);
	long expected = 9;
	CHECK(counter->compare_exchange_strong(expected, 11));
	return 0;
}
