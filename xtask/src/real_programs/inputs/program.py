import hashlib, json, multiprocessing, os, re, subprocess, sys, threading

words = open("words.txt").read().split()
counts = {}
for word in words:
    counts[word] = counts.get(word, 0) + 1
print(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:3])

results = [None] * 4
def work(n):
    results[n] = hashlib.sha256(" ".join(words[n::4]).encode()).hexdigest()[:12]
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(results)

print(subprocess.run(["sort", "-u"], input="b\na\nb\n", capture_output=True, text=True).stdout.split())
print(subprocess.run("exit 5", shell=True).returncode)
try:
    subprocess.run(["./no-such-program"])
except FileNotFoundError as error:
    print("missing:", error.errno)
def square(n):
    return n * n
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(square, range(10)))
    print(re.sub(r"(\w)(\w*)", r"\2\1", "some words here"), json.dumps({"a": [1, 2.5, None]}))
    sys.stderr.write("to stderr\n")
    sys.exit(9)
