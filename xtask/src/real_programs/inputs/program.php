<?php
$words = preg_split('/\s+/', trim(file_get_contents('words.txt')));
$counts = array_count_values($words);
uksort($counts, fn($a, $b) => $counts[$b] <=> $counts[$a] ?: strcmp($a, $b));
print_r(array_slice($counts, 0, 3));
echo hash('sha256', implode(' ', $words)), "\n", shell_exec('echo from a shell');
try { throw new Exception('on purpose'); } catch (Exception $e) { echo $e->getMessage(), "\n"; }
function gen() { foreach (range(1, 3) as $i) yield $i; }
echo array_sum(iterator_to_array(gen())), "\n";
exit(4);
