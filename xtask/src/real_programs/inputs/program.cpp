#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

int main()
{
	std::map<std::string, int> counts;
	std::ifstream in("words.txt");
	for (std::string word; in >> word;)
		counts[word]++;
	std::vector<std::pair<int, std::string>> ranking;
	for (auto &[word, n] : counts)
		ranking.emplace_back(-n, word);
	std::sort(ranking.begin(), ranking.end());
	for (std::size_t i = 0; i < 5 && i < ranking.size(); i++)
		std::cout << -ranking[i].first << ' ' << ranking[i].second << '\n';
	int caught = 0;
	for (int i = 0; i < 100; i++)
		try {
			if (i % 3 == 0)
				throw std::out_of_range("i");
		} catch (const std::exception &) {
			caught++;
		}
	long sums[4] = {};
	std::vector<std::thread> threads;
	for (int t = 0; t < 4; t++)
		threads.emplace_back([t, &sums] { for (int i = 0; i < 100000; i++) sums[t] += i % (t + 2); });
	for (auto &t : threads)
		t.join();
	std::cout << caught << ' ' << sums[0] + sums[1] + sums[2] + sums[3] << std::endl;
}
