//! Languages: interpreters, compilers at run time, their threads and timers.

use super::case::Case;

pub const CASES: &[Case] = &[
    Case::new("node hot loop", &["node"], r#"
        node -e '
        function f(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s }
        let t = 0; for (let k = 0; k < 300; k++) t ^= f(100000);
        const a = []; for (let i = 0; i < 100000; i++) a.push({ x: i, y: String(i) });
        console.log(t, a.filter(o => o.x % 3 == 0).map(o => o.y.length).reduce((p, c) => p + c, 0))'
    "#)
        .packages(&["nodejs"]),
    Case::new("node timers", &["node"], r#"
        node -e 'let n = 0; const i = setInterval(() => { console.log(++n); if (n == 3) clearInterval(i) }, 15);
        setTimeout(() => console.log("late"), 1500); setImmediate(() => console.log("now"))'
    "#)
        .packages(&["nodejs"]),
    Case::new("node workers", &["node"], r#"
        node -e 'const { Worker, isMainThread, parentPort } = require("worker_threads");
        const code = "const { parentPort } = require(\"worker_threads\"); let s = 0; for (let i = 0; i < 1e6; i++) s += i; parentPort.postMessage(s)";
        let left = 2; for (let k = 0; k < 2; k++) new Worker(code, { eval: true }).on("message", m => { console.log(m); if (!--left) console.log("end") })'
    "#)
        .packages(&["nodejs"]),
    Case::new("node server", &["node"], r#"
        node -e 'const h = require("http"); const s = h.createServer((q, r) => r.end("hello " + q.url)).listen(0, "127.0.0.1", () => {
        const get = n => h.get({ port: s.address().port, path: "/" + n, agent: false }, r => { let b = ""; r.on("data", d => b += d);
        r.on("end", () => { console.log(b); if (n < 20) get(n + 1); else s.close() }) }); get(1) })'
    "#)
        .packages(&["nodejs"]),
    Case::new("node crypto and zlib", &["node"], r#"
        node -e 'const z = require("zlib"), f = require("fs"); const w = f.readFileSync("words.txt");
        console.log(z.gunzipSync(z.gzipSync(w)).equals(w), require("crypto").createHash("sha256").update(w).digest("hex"));
        require("crypto").pbkdf2("pw", "salt", 20000, 32, "sha512", (e, k) => console.log(k.toString("hex")))'
    "#)
        .packages(&["nodejs"]),
    Case::new("ruby sleep", &["ruby"], "ruby -e 't = Time.now; sleep 0.2; puts((Time.now - t).round(1))'"),
    Case::new("ruby threads", &["ruby"], r#"
        ruby -e 'q = Queue.new; t = 4.times.map { |i| Thread.new { sleep 0.01 * i; q << i } }; t.each(&:join); p q.size
        r, w = IO.pipe; fork { w.puts "child"; exit! 3 }; p r.gets; Process.wait; p $?.exitstatus; p IO.select([r], nil, nil, 0.05)'
    "#),
    Case::new("ruby blocks", &["ruby"], r#"
        ruby -e 'h = Hash.new(0); File.foreach("words.txt") { |l| l.split.each { |w| h[w] += 1 } }
        p h.sort_by { |w, n| [-n, w] }.first(3); p (1..300).inject(:*).to_s.size; f = Fiber.new { Fiber.yield 1; 2 }; p f.resume, f.resume'
    "#),
    Case::new("python select", &["python3"], r#"
        $PYTHON -c '
import select, time
end = time.time() + 0.5; n = 0
while time.time() < end: select.select([], [], [], 0.01); n += 1
print(n > 3)'
    "#),
    Case::new("python asyncio", &["python3"], r#"
        $PYTHON -c '
import asyncio
async def one(n):
    await asyncio.sleep(0.05 * n); return n
async def main():
    print(await asyncio.gather(*(one(n) for n in range(5))))
    try: await asyncio.wait_for(asyncio.sleep(10), 0.05)
    except asyncio.TimeoutError: print("late")
    s = await asyncio.start_server(lambda r, w: (w.write(b"hi"), w.close()), "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*s.sockets[0].getsockname()); print(await r.read()); s.close()
asyncio.run(main())'
    "#),
    Case::new("python alarm", &["python3"], r#"
        $PYTHON -c '
import signal, time
got = []
signal.signal(signal.SIGALRM, lambda s, f: got.append(s))
signal.setitimer(signal.ITIMER_REAL, 0.05); signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
while len(got) < 4: pass
signal.setitimer(signal.ITIMER_REAL, 0)
t = time.monotonic(); print(len(got), signal.sigtimedwait([signal.SIGUSR1], 0.1), round(time.monotonic() - t, 1))'
    "#),
    Case::new("python threads", &["python3"], r#"
        $PYTHON -c '
import threading, queue, time
q = queue.Queue(); c = threading.Condition(); done = []
def work():
    while (n := q.get()) is not None: done.append(n * n)
ts = [threading.Thread(target=work) for _ in range(3)]; [t.start() for t in ts]; [q.put(n) for n in range(200)]; [q.put(None) for t in ts]; [t.join() for t in ts]
print(sum(done)); e = threading.Event(); print(e.wait(0.05)); threading.Timer(0.05, e.set).start(); print(e.wait(5))'
    "#),
    Case::new("python processes", &["python3"], r#"
        $PYTHON -c '
import multiprocessing as m, subprocess
def f(n): return n * n
if __name__ == "__main__":
    with m.Pool(2) as p: print(sum(p.map(f, range(100))))
    print(subprocess.run(["sort", "-r"], input="a\nb\n", text=True, capture_output=True).stdout)
    try: subprocess.run(["sleep", "5"], timeout=0.1)
    except subprocess.TimeoutExpired: print("late")'
    "#)
        .without_files(),
    Case::new("python ctypes", &["python3"], r#"
        $PYTHON -c '
import ctypes
C = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
a = (ctypes.c_int * 6)(5, 3, 9, 1, 7, 2); ctypes.CDLL(None).qsort(a, 6, 4, C(lambda x, y: x[0] - y[0])); print(list(a))'
    "#),
    Case::new("python sqlite", &["python3"], r#"
        $PYTHON -c '
import sqlite3
d = sqlite3.connect("t.db"); d.execute("create table t(a, b)"); d.executemany("insert into t values(?, ?)", [(n, n * n) for n in range(5000)])
d.commit(); print(d.execute("select count(*), sum(b) from t where a % 7 = 0").fetchall())'
    "#)
        .without_files(),
    Case::new("python sockets", &["python3"], r#"
        $PYTHON -c '
import socket, threading
s = socket.create_server(("127.0.0.1", 0))
def serve():
    c, _ = s.accept()
    while b := c.recv(100): c.sendall(b.upper())
t = threading.Thread(target=serve); t.start(); c = socket.create_connection(s.getsockname()); c.settimeout(5)
for n in range(50): c.sendall(b"line %d" % n); assert c.recv(100) == b"LINE %d" % n
c.settimeout(0.05)
try: c.recv(1)
except socket.timeout: print("late")
c.close(); t.join(); print("same")'
    "#),
    Case::new("python text", &["python3"], r#"
        $PYTHON -c '
import collections, hashlib, json, re, zlib
w = open("words.txt").read(); print(collections.Counter(w.split()).most_common(3), len(re.findall(r"\b(\w\w)\w*\1\b", w)))
print(hashlib.sha3_256(w.encode()).hexdigest(), zlib.crc32(w.encode()), len(json.dumps(w.splitlines())))'
        $PYTHON -m json.tool <<< '{"a": [1, 2, {"b": null}]}'
    "#),
    Case::new("perl alarm", &["perl"], r#"
        perl -e '$SIG{ALRM} = sub { print "rang\n" }; alarm 1; select(undef, undef, undef, 5); eval { local $SIG{ALRM} = sub { die "late\n" }; alarm 1; 1 while 1 }; print $@'
    "#),
    Case::new("perl forks", &["perl"], r#"
        perl -e 'for my $n (1..5) { my $p = fork; exit $n unless $p; waitpid $p, 0; print $? >> 8, "\n" } open my $h, "-|", "sort -r words.txt"; my $c = 0; $c++ while <$h>; print "$c\n"'
    "#),
    Case::new("perl text", &["perl"], r#"
        perl -ne 'for (split) { $c{$_}++ } END { print "$_ $c{$_}\n" for (sort { $c{$b} <=> $c{$a} || $a cmp $b } keys %c)[0..4] }' words.txt
        perl -MDigest::SHA=sha256_hex -e 'local $/; open F, "words.txt"; print sha256_hex(<F>), "\n"'
    "#),
    Case::new("erlang", &["erl"], r#"
        erl -noshell -eval 'io:format("~p~n", [lists:sum([X * X || X <- lists:seq(1, 100000), X rem 3 =:= 0])]), halt(3).'; echo $?
    "#)
        .packages(&["erlang-base"]),
    Case::new("erlang processes", &["erl"], r#"
        erl -noshell -eval 'P = self(), [spawn(fun() -> timer:sleep(N), P ! N end) || N <- [30, 10, 20]],
            io:format("~p~n", [[receive X -> X end || _ <- [1, 2, 3]]]), receive never -> ok after 50 -> io:format("late~n") end, halt(0).'
    "#)
        .packages(&["erlang-base"]),
    Case::new("clisp", &["clisp"], "clisp -q -norc -x '(progn (defun f (n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (compile (quote f)) (list (f 20) (expt 7 77)))'"),
    Case::new("sbcl", &["sbcl"], r#"
        sbcl --noinform --no-userinit --eval '(progn (defun f (n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (print (f 25)) (sleep 0.05) (print (expt 7 77)) (terpri) (quit :unix-status 4))'; echo $?
    "#),
    Case::new("guile", &["guile"], r#"
        guile --no-auto-compile -c '(define (f n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (display (f 22)) (newline) (usleep 20000) (display (expt 7 77))'
    "#)
        .packages(&["guile-3.0"]),
    Case::new("ocaml", &["ocaml"], r#"
        echo 'let rec f n = if n < 2 then n else f (n-1) + f (n-2) in print_int (f 22)' > f.ml && ocaml f.ml
        ocamlfind ocamlopt 2> /dev/null; ocamlopt -o f f.ml && ./f
    "#)
        .packages(&["ocaml-nox"])
        .without_files(),
    Case::new("luajit", &["luajit"], r#"
        luajit -e 'local s = 0 for i = 1, 2e7 do s = s + i % 7 end print(s) local t = {} for i = 1, 1e5 do t[i] = tostring(i) end print(#table.concat(t))'
        luajit -e 'local ffi = require "ffi" ffi.cdef "int abs(int);" print(ffi.C.abs(-5))'
    "#),
    Case::new("php loops", &["php"], r#"
        php -r '$s = 0; for ($i = 0; $i < 2000000; $i++) $s = ($s * 31 + $i) % 1000003; echo $s, "\n"; usleep(20000); echo md5_file("words.txt"), "\n";'
    "#)
        .packages(&["php-cli"]),
    Case::new("java", &["java"], r#"
        java -Xint -version 2> /dev/null; echo $?; java -XX:+UseSerialGC -Xshare:auto -version 2>&1 | wc -l
    "#)
        .packages(&["default-jre-headless"]),
    Case::new("java program", &["javac"], r#"
        cat > P.java <<'END'
import java.util.*; import java.util.concurrent.*; import java.util.stream.*;
public class P { public static void main(String[] a) throws Exception {
    long s = 0; for (int k = 0; k < 200; k++) for (int i = 0; i < 100000; i++) s = s * 31 + i; System.out.println(s);
    var e = Executors.newScheduledThreadPool(2); var f = e.schedule(() -> 7, 50, TimeUnit.MILLISECONDS); System.out.println(f.get()); e.shutdown();
    System.out.println(IntStream.range(0, 100000).parallel().mapToLong(i -> (long) i * i).sum()); Thread.sleep(30); System.exit(5); } }
END
        javac P.java && java P; echo $?
    "#)
        .packages(&["default-jdk-headless"])
        .without_files(),
    Case::new("tcl timers", &["tclsh"], r#"
        echo 'after 50 { puts late; set done 1 }; after 10 { puts soon }; vwait done' | tclsh
    "#)
        .packages(&["tcl"]),
    Case::new("tcc -run", &["tcc"], r#"
        printf '#include <stdio.h>\nint main(void) { long s = 0; for (int i = 0; i < 30000000; i++) s = s * 31 + i; printf("%%ld\\n", s); return 9; }\n' > t.c; tcc -run t.c; echo $?
    "#),
];
