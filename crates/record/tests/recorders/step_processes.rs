//! The reference recorder's view of threads, processes, signals, mappings and files.

use crate::step_support::{Run, is_frame, run, run_main, run_main_with};
use record::recorder::RecordOptions;
use trace::event::ExitStatus;

fn run_default(program: &str, flags: &[&str]) -> Run {
    run(program, flags, &RecordOptions::default())
}

#[test]
fn a_dynamic_program_and_its_end() {
    let program = "int main(int argc, char **argv) { map_pool(argv[1]); *(uint32_t *)pm = 7; return 3; }";
    let run = run_default(program, &["-pie"]);
    assert_eq!(run.recorded.status, ExitStatus::Code(3));
    assert_eq!(run.lines, ["t0 process 0 of None", "t0 map 0x0 0x10000", "t0 Plain 0x0 07000000", "t0 exit Code(3)"]);
    assert_eq!(run.pool[..4], [7, 0, 0, 0]);
}

#[test]
fn kernel_writes_and_file_writes() {
    let lines = run_main(
        "int p[2]; pipe(p); write(p[1], \"abcdefgh\", 8); read(p[0], (void *)pm + 4094, 3); \
         struct iovec v[2] = {{(void *)pm + 1, 1}, {(void *)pm + 8, 9}}; readv(p[0], v, 2); \
         pwrite(fd, \"xy\", 2, 100); lseek(fd, 65535, 0); write(fd, \"12\", 2); ftruncate(fd, 70000); \
         fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 4096); fsync(fd); fdatasync(fd); \
         msync((void *)pm + 4096, 5000, MS_SYNC); ftruncate(fd, 65536)",
        &[],
    );
    let expected = [
        "t0 kernel 0xffe 6162",
        "t0 kernel 0x1000 63",
        "t0 kernel 0x1 64",
        "t0 kernel 0x8 65666768",
        "t0 file 0x64 7879",
        "t0 resize 0x10001",
        "t0 file 0xffff 31",
        "t0 file 0x10000 32",
        "t0 resize 0x11170",
        "t0 zero 0x2000 0x1000",
        "t0 fsync data_only=false",
        "t0 fsync data_only=true",
        "t0 msync 0x1000 0x1388",
        "t0 resize 0x10000",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn mappings_come_move_and_go() {
    let program = "int main(int argc, char **argv) { map_pool(argv[1]);
        munmap((void *)pm + 0x4000, 0x2000); pm[0x6000] = 1;
        volatile char *q = mmap(0, 0x1000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0x3000); q[5] = 2;
        volatile char *r = mremap((void *)q, 0x1000, 0x2000, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)pm + 0x100000); r[0x1001] = 3;
        mmap((void *)pm, 0x1000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        volatile char *s = mmap(0, 0x1000, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0); s[0] = 9;
        _exit(0); }";
    let lines = run_default(program, &[]).lines;
    let expected = [
        "t0 process 0 of None",
        "t0 map 0x0 0x10000",
        "t0 unmap 0x4000 0x2000",
        "t0 Plain 0x6000 01",
        "t0 map 0x3000 0x1000",
        "t0 Plain 0x3005 02",
        "t0 unmap 0x3000 0x1000",
        "t0 map 0x3000 0x2000",
        "t0 Plain 0x4001 03",
        "t0 unmap 0x0 0x1000",
        "t0 exit Code(0)",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn threads_are_one_total_order() {
    let program = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        static void *work(void *a) { for (int i = 0; i < 5; i++) { pthread_mutex_lock(&m); ++*(uint32_t *)pm; pthread_mutex_unlock(&m); } return 0; }
        int main(int argc, char **argv) { map_pool(argv[1]); *(uint32_t *)pm = 0;
        pthread_t t[3]; for (int i = 0; i < 3; i++) pthread_create(t + i, 0, work, 0);
        for (int i = 0; i < 3; i++) pthread_join(t[i], 0); _exit(0); }";
    let run = run_default(program, &["-pthread"]);
    let counts: Vec<&str> =
        run.lines.iter().filter_map(|line| line.split_once("Plain 0x0 ")).map(|(_, v)| &v[..2]).collect();
    let expected: Vec<String> = (0..=15).map(|i| format!("{i:02x}")).collect();
    assert_eq!(counts, expected);
    for word in ["t1 thread start", "t3 thread start", "t1 thread end", "t2 thread end"] {
        assert!(run.lines.iter().any(|line| line == word), "no {word:?} in {:?}", run.lines);
    }
}

#[test]
fn forks_and_children_that_die() {
    let program = "int main(int argc, char **argv) { map_pool(argv[1]); int s;
        if (fork() == 0) { pm[1] = 1; raise(SIGKILL); } wait(&s); pm[2] = WTERMSIG(s);
        if (vfork() == 0) { pm[3] = 3; _exit(5); } wait(&s); pm[4] = WEXITSTATUS(s); abort(); }";
    let run = run_default(program, &[]);
    assert_eq!(run.recorded.status, ExitStatus::Signal(6));
    let expected = [
        "t0 process 0 of None",
        "t0 map 0x0 0x10000",
        "t1 process 1 of Some(0)",
        "t1 Plain 0x1 01",
        "t1 exit Signal(9)",
        "t0 Plain 0x2 09",
        "t2 process 2 of Some(0)",
        "t2 Plain 0x3 03",
        "t2 exit Code(5)",
        "t0 Plain 0x4 05",
        "t0 exit Signal(6)",
    ];
    assert_eq!(run.lines, expected);
}

#[test]
fn exec_starts_afresh() {
    let program = "int main(int argc, char **argv) { map_pool(argv[1]); pm[argc] = argc;
        if (argc == 2) { execl(\"/proc/self/exe\", argv[0], argv[1], \"x\", (char *)0); _exit(9); } _exit(0); }";
    let run = run_default(program, &[]);
    let expected = [
        "t0 process 0 of None",
        "t0 map 0x0 0x10000",
        "t0 Plain 0x2 02",
        "t0 exec",
        "t0 map 0x0 0x10000",
        "t0 Plain 0x3 03",
        "t0 exit Code(0)",
    ];
    assert_eq!(run.lines, expected);
}

#[test]
fn signal_handlers() {
    let declarations = "static sigjmp_buf j;
        static void seen(int s) { pm[s] = s; }
        static void fault(int s, siginfo_t *i, void *c) { pm[s] = 1; siglongjmp(j, 1); }";
    let body =
        "signal(SIGUSR1, seen); raise(SIGUSR1); pm[0] = 1; signal(SIGCHLD, SIG_IGN); raise(SIGCHLD); raise(SIGWINCH);
        stack_t k = {.ss_sp = malloc(65536), .ss_size = 65536}; sigaltstack(&k, 0);
        struct sigaction a = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK}; sigaction(SIGSEGV, &a, 0);
        if (!sigsetjmp(j, 1)) { pm[1] = 1; *(volatile int *)8 = 1; pm[2] = 99; } pm[3] = 1";
    let lines = run_main_with(declarations, body, &[]);
    assert_eq!(lines, ["t0 Plain 0xa 0a", "t0 Plain 0x0 01", "t0 Plain 0x1 01", "t0 Plain 0xb 01", "t0 Plain 0x3 01"]);
}

#[test]
fn a_blocking_call_that_a_signal_interrupts() {
    let declarations = "static void seen(int s) { pm[0] = s; }";
    let body = "struct sigaction a = {.sa_handler = seen}; sigaction(SIGCHLD, &a, 0); int p[2]; pipe(p); \
        if (fork() == 0) { _exit(0); } char c; pm[1] = read(p[0], &c, 1) == -1; \
        a.sa_flags = SA_RESTART; sigaction(SIGCHLD, &a, 0); \
        if (fork() == 0) { sched_yield(); write(p[1], \"z\", 1); _exit(0); } pm[2] = read(p[0], &c, 1); int s; wait(&s); wait(&s)";
    let lines = run_main_with(declarations, body, &[]);
    assert!(lines.contains(&"t0 Plain 0x1 01".to_owned()), "{lines:?}");
    assert!(lines.contains(&"t0 Plain 0x2 01".to_owned()), "{lines:?}");
}

#[test]
fn time_and_randomness_are_virtual() {
    let body = "struct timespec t; clock_gettime(CLOCK_REALTIME, &t); *(uint64_t *)pm = t.tv_sec; \
        sleep(100); clock_gettime(CLOCK_REALTIME, &t); *(uint64_t *)(pm + 8) = t.tv_sec; \
        getrandom((void *)pm + 16, 8, 0); *(uint64_t *)(pm + 24) = __rdtsc(); _rdrand64_step((void *)pm + 32)";
    let first = run_main_with("#include <sys/random.h>", body, &["-mrdrnd"]);
    let hex = |value: u64| value.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(first[0], format!("t0 Plain 0x0 {}", hex(1_767_225_600)));
    assert_eq!(first[1], format!("t0 Plain 0x8 {}", hex(1_767_225_700)));
    assert!(first[2].starts_with("t0 kernel 0x10 "));
    assert_eq!(run_main_with("#include <sys/random.h>", body, &["-mrdrnd"]), first);
}

#[test]
fn watched_functions() {
    let program = "__attribute__((noinline)) long twice(long a, long b) { pm[0] = a; return a * 2 + b; }
        __attribute__((noinline)) long tail(long a, long b) { return twice(a + 1, b); }
        int main(int argc, char **argv) { map_pool(argv[1]); pm[1] = twice(3, 4) + tail(5, 6); _exit(0); }";
    let options = RecordOptions { watch: vec!["twice".into(), "tail".into()], ..RecordOptions::default() };
    let lines = run(program, &["-O2"], &options).lines;
    let lines: Vec<&String> = lines.iter().filter(|line| !is_frame(line)).collect();
    let expected = [
        "t0 call 0 [3, 4]",
        "t0 Plain 0x0 03",
        "t0 return 0 10",
        "t0 call 1 [5, 6]",
        "t0 call 0 [6, 6]",
        "t0 Plain 0x0 06",
        "t0 return 0 18",
        "t0 Plain 0x1 1c",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn globs_choose_the_pools() {
    let program = "int main(int argc, char **argv) { map_pool(argv[1]); pm[0] = 1; _exit(0); }";
    let options = |glob: &str| RecordOptions { pm: vec![glob.to_owned()], ..RecordOptions::default() };
    let others = run(program, &[], &options("*.other")).lines;
    assert_eq!(others, ["t0 process 0 of None", "t0 exit Code(0)"]);
    let mine = run(program, &[], &options("*/a.pool")).lines;
    assert_eq!(mine.len(), 4);
}

#[test]
fn loads_when_asked_for() {
    let program = "int main(int argc, char **argv) { map_pool(argv[1]); uint32_t v = *(volatile uint32_t *)(pm + 4); \
        ++pm[8]; _exit(v == 0); }";
    let options = RecordOptions { loads: true, ..RecordOptions::default() };
    let lines = run(program, &["-O2"], &options).lines;
    let lines: Vec<&String> = lines.iter().filter(|line| !is_frame(line)).collect();
    assert_eq!(lines[0], "t0 load 0x4 4");
    assert_eq!(lines[1], "t0 load 0x8 1");
    assert_eq!(lines[2], "t0 Plain 0x8 ef");
}

#[test]
fn ids_and_handlers_are_the_same_in_every_run() {
    let declarations = "static void seen(int s) { pm[8] = s; }";
    let body = "signal(SIGUSR1, seen); *(uint32_t *)pm = getpid(); raise(SIGUSR1)";
    let lines = run_main_with(declarations, body, &[]);
    assert_eq!(lines[1], "t0 Plain 0x8 0a");
    // SAFETY: only asks for the user's id.
    if unsafe { libc::geteuid() } == 0 {
        assert_eq!(lines[0], "t0 Plain 0x0 02000000", "the target is process 2 of its namespace");
    }
}

#[test]
fn operations_are_lines_of_standard_input() {
    let program = "int main(int argc, char **argv) { map_pool(argv[1]); int p[2]; pipe(p); write(p[1], \"a\\nbc\\n\", 5); close(p[1]);
        dup2(p[0], 0); char b[64]; ssize_t n; int i = 0; while ((n = read(0, b, 64)) > 0) pm[i++] = n; _exit(0); }";
    let options = RecordOptions { operations_stdin: true, ..RecordOptions::default() };
    let lines = run(program, &[], &options).lines;
    let lines: Vec<&String> = lines.iter().filter(|line| !is_frame(line)).collect();
    assert_eq!(lines, ["t0 begin 0", "t0 Plain 0x0 02", "t0 end 0", "t0 begin 1", "t0 Plain 0x1 03", "t0 end 1"]);
}
