//! The fork server on a small C program: what a run does becomes its report, the next run knows nothing of it, and the pools
//! themselves stay as they are. And it says of a crash image what native mode says.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::server_world::{ORIGINAL, POOL_BYTES, World, brief, line, lines, passes_through, quick};
use recover::limits::Limits;
use recover::native::{Native, PoolFile};
use recover::report::RunReport;
use recover::server::{Server, ServerError};
use recover::slot::Slot;
use targets::crash::{CrashTarget, TWIN};
use trace::event::PoolId;
use verdict::end::End;
use verdict::end::Limit;

#[test]
fn every_run_ends_as_its_image_says() {
    let mut world = World::new();
    let mut server = world.serve("code");
    for code in [0, 3, 42, 0] {
        world.put(0, 0, &[code]);
        let report = world.run(&mut server);
        assert_eq!(report.end, End::Exited(code.into()));
        assert_eq!(lines(&report), [0]);
        assert!(!report.pools_replaced && report.dirtied.is_empty());
    }
    assert_eq!(server.starts, 1);
    world.assert_untouched();
}

#[track_caller]
fn signalled(report: &RunReport, expected: i32, function: &str) {
    let End::Signalled { signal, path } = &report.end else { panic!("{:?}", report.end) };
    assert_eq!(*signal, expected);
    assert!(passes_through(path, function), "{function} is not in {path:x?}");
    assert!(passes_through(path, "main"), "main is not in {path:x?}");
}

#[test]
fn a_fatal_signal_comes_with_its_call_path() {
    let world = World::new();
    for (act, signal, function) in [("segv", libc::SIGSEGV, "store_to_nowhere"), ("abort", libc::SIGABRT, "give_up")] {
        let mut server = world.serve(act);
        signalled(&world.run(&mut server), signal, function);
        assert!(passes_through(&server.broke_down_at, function));
        signalled(&world.run(&mut server), signal, function);
        assert_eq!(server.starts, 1, "{act}: the server goes on");
    }
}

#[test]
fn a_hang_is_a_verdict_and_says_where() {
    let mut world = World::new();
    let mut server = world.serve("spin");
    world.put(0, 1, &[1]);
    assert_eq!(world.run_within(&mut server, &brief()).end, End::Hung);
    assert!(passes_through(&server.broke_down_at, "spin"), "{:x?}", server.broke_down_at);
    world.put(0, 1, &[0]);
    assert_eq!(world.run(&mut server).end, End::Exited(5));
    assert_eq!(world.once("sleep", &brief()).end, End::Hung);
}

#[test]
fn cpu_time_has_a_limit() {
    let limits = Limits { cpu: std::time::Duration::from_millis(100), ..quick() };
    assert_eq!(World::new().once("spin", &limits).end, End::OverLimit(Limit::Cpu));
}

#[test]
fn memory_has_a_limit() {
    let world = World::new();
    let limits = Limits { memory: 64 << 20, ..quick() };
    let mut server = world.serve("eat");
    for _ in 0..2 {
        assert_eq!(world.run_within(&mut server, &limits).end, End::OverLimit(Limit::Memory));
    }
}

#[test]
fn limits_hold_before_the_first_use_of_a_pool() {
    let world = World::new();
    let limits = Limits { memory: 64 << 20, ..quick() };
    assert_eq!(world.once("hoard-first", &limits).end, End::OverLimit(Limit::Memory));
    let report = world.once("spin-first", &brief());
    assert_eq!(report.end, End::Hung);
    // Not the twenty seconds that the fork server itself may take.
    assert!(report.wall < std::time::Duration::from_secs(15), "{:?}", report.wall);
}

#[test]
fn memory_is_that_of_all_programs_that_a_shell_starts() {
    let world = World::new();
    let program = crate::server_world::program().display();
    let text = format!("for i in 1 2 3; do {program} hoard pool second & done; wait");
    let mut server = world.serve_command(&world.command_of(Path::new("/bin/sh"), &["-c", &text]));
    // Each of them may have as much.
    let limits = Limits { memory: 256 << 20, ..quick() };
    assert_eq!(world.run_within(&mut server, &limits).end, End::OverLimit(Limit::Memory));
    drop(server);
    assert_eq!(world.processes_that_know_it(), 0);
}

#[test]
fn a_fork_bomb_ends_at_its_limit() {
    let world = World::new();
    let limits = Limits { processes: 20, ..quick() };
    let mut server = world.serve("bomb");
    for _ in 0..2 {
        assert_eq!(world.run_within(&mut server, &limits).end, End::OverLimit(Limit::Processes));
    }
    drop(server);
    assert_eq!(world.processes_that_know_it(), 0);
}

#[test]
fn output_is_cut_and_a_flood_ends_the_run() {
    let world = World::new();
    let report = world.once("flood", &Limits { output: 1000, ..quick() });
    assert_eq!((report.end, report.stdout.len(), report.output_cut), (End::OverLimit(Limit::Output), 1000, true));
    let report = world.once("flood", &Limits { output: 60 << 20, ..quick() });
    assert_eq!((report.end, report.output_cut), (End::Exited(0), true));
}

#[test]
fn what_was_printed_before_the_fork_point_is_in_every_run() {
    let mut world = World::new();
    let mut server = world.serve("prefix");
    for image in ["first", "other"] {
        world.put(0, 0, image.as_bytes());
        let report = world.run(&mut server);
        assert_eq!(String::from_utf8_lossy(&report.stdout), format!("before\n{image}\n"));
        assert_eq!(report.stderr, b"early\n");
    }
}

#[test]
fn a_recovery_that_wants_no_pool_ends_all_the_same() {
    let world = World::new();
    let mut server = world.serve("no-pool");
    for _ in 0..2 {
        let report = world.run(&mut server);
        assert_eq!((&report.end, lines(&report).len()), (&End::Exited(6), 0));
    }
}

#[test]
fn recovery_may_delete_create_and_shorten_and_the_original_stays() {
    for act in ["delete", "recreate", "shorten"] {
        let mut world = World::new();
        let mut server = world.serve(act);
        for round in 0..3 {
            let report = world.run(&mut server);
            assert_eq!(report.end, End::Exited(0), "{act} {round}: {}", String::from_utf8_lossy(&report.stderr));
            assert!(report.pools_replaced, "{act}");
            world.assert_untouched();
            world.renew();
        }
        assert_eq!(world.once("print", &quick()).stdout, b"image\n", "{act}");
        assert_eq!(world.content(0).len() as u64, POOL_BYTES);
    }
}

#[test]
fn a_pool_that_gets_another_name_is_left_to_native_mode() {
    // Only the pool's own name leads into the slot, and the other name is on another file system.
    let mut world = World::new();
    let answer = world.try_run(&mut world.serve("rename"), &quick());
    assert!(matches!(answer, Err(ServerError::Refused(_))), "{answer:?}");
    world.assert_untouched();
    world.renew();
    assert_eq!(world.once("print", &quick()).stdout, b"image\n");
}

#[test]
fn a_daemon_may_finish_its_work() {
    let mut world = World::new();
    let mut server = world.serve("daemon");
    for _ in 0..3 {
        world.put(0, 64, &[0]);
        let report = world.run(&mut server);
        assert_eq!(report.end, End::Exited(4));
        assert_eq!(world.content(0)[64], 7);
    }
}

#[test]
fn a_daemon_that_crashes_is_a_crash_and_one_that_stays_is_ended() {
    let world = World::new();
    let end = world.once("daemon-crash", &quick()).end;
    assert!(matches!(end, End::Signalled { signal: libc::SIGABRT, .. }), "{end:?}");
    // What it waits for itself is its own business, as in native mode.
    assert_eq!(world.once("child-crash", &quick()).end, End::Exited(0));
    let mut server = world.serve("daemon-stays");
    assert_eq!(world.run(&mut server).end, End::Exited(3));
    assert_eq!(world.run(&mut server).end, End::Exited(3));
    drop(server);
    assert_eq!(world.processes_that_know_it(), 0);
}

#[test]
fn reads_are_the_lines_in_order_of_first_read() {
    let world = World::new();
    let mut server = world.serve("lines");
    for _ in 0..3 {
        assert_eq!(lines(&world.run(&mut server)), [5, 3, 4]);
    }
}

#[test]
fn the_kernels_reads_are_reads_and_own_bytes_are_not() {
    let mut world = World::new();
    world.put(0, 128, &77u64.to_le_bytes());
    let report = world.once("pread", &quick());
    assert_eq!((lines(&report), &report.stdout[..]), (vec![2], &b"77\n"[..]));
    world.put(0, 192, b"12345678");
    let report = world.once("write", &quick());
    assert_eq!((lines(&report), &report.stdout[..]), (vec![3], &b"12345678"[..]));
    let report = world.once("own", &quick());
    assert_eq!((&report.end, lines(&report).len()), (&End::Exited(0), 0));
    assert_eq!(report.dirtied.iter().map(|line| line.line.0).collect::<Vec<_>>(), [4]);
}

#[test]
fn reads_that_cannot_all_be_known_are_not_claimed() {
    let world = World::new();
    for act in ["threads", "private", "proc-mem", "vm-readv", "readv", "sendfile"] {
        let report = world.once(act, &quick());
        assert_eq!((report.end, report.reads), (End::Exited(0), None), "{act}");
    }
}

#[test]
fn time_and_chance_are_the_same_in_every_run() {
    let world = World::new();
    let mut first = world.serve("world");
    let report = world.run(&mut first);
    assert_eq!(lines(&report).len(), 1);
    for again in [world.run(&mut first), world.run(&mut first), world.once("world", &quick())] {
        assert_eq!(String::from_utf8_lossy(&again.stdout), String::from_utf8_lossy(&report.stdout));
        assert_eq!(again.reads, report.reads);
    }
}

#[test]
fn every_way_to_the_pool_leads_to_its_image() {
    let world = World::new();
    symlink(world.pool(), world.dir().join("link")).unwrap();
    symlink(world.dir().join("public"), world.dir().join("elsewhere")).unwrap();
    let absolute = world.pool();
    let through = world.dir().join("elsewhere/pool");
    let ways = [absolute.to_str().unwrap(), "pool", "./pool", "../link", "../public/pool", through.to_str().unwrap()];
    for way in ways {
        let report = world.run(&mut world.serve_command(&world.command(&["print", way])));
        assert_eq!(String::from_utf8_lossy(&report.stdout), "image\n", "{way}");
    }
    world.assert_untouched();
}

#[test]
fn a_pool_that_is_no_longer_there_can_be_recovered() {
    let world = World::new();
    fs::remove_file(world.pool()).unwrap();
    let mut server = world.serve("print");
    assert_eq!(world.run(&mut server).stdout, b"image\n");
    assert_eq!(world.run(&mut server).stdout, b"image\n");
    assert!(!world.pool().exists());
}

#[test]
fn two_pools_are_two() {
    let mut world = World::new();
    let mut server = world.serve("two");
    for second in [b"more", b"less"] {
        world.put(1, 0, second);
        let report = world.run(&mut server);
        assert_eq!(String::from_utf8_lossy(&report.stdout), format!("image {}\n", String::from_utf8_lossy(second)));
        assert_eq!(report.reads, Some(vec![line(0, 0), line(1, 0)]));
        assert_eq!(report.dirtied.iter().map(|l| (l.pool.0, l.line.0)).collect::<Vec<_>>(), [(1, 1)]);
    }
    world.assert_untouched();
}

#[test]
fn a_script_has_the_same_limits() {
    let mut world = World::new();
    world.put(0, 1, &[1]);
    let program = crate::server_world::program().display();
    let script = |act: &str| {
        let text = format!("{program} {act} pool second; exit $?");
        world.serve_command(&world.command_of(Path::new("/bin/sh"), &["-c", &text]))
    };
    assert_eq!(world.run_within(&mut script("spin"), &brief()).end, End::Hung);
    let flooding = world.run_within(&mut script("flood"), &Limits { output: 1000, ..quick() });
    assert_eq!(flooding.end, End::OverLimit(Limit::Output));
    world.assert_untouched();
}

#[test]
fn a_script_that_calls_the_recovery_is_a_recovery() {
    let mut world = World::new();
    let script = world.dir().join("recover.sh");
    let program = crate::server_world::program().display();
    fs::write(&script, format!("#!/bin/sh\necho start\n{program} print pool && echo end\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut server = world.serve_command(&world.command_of(&script, &[]));
    for image in ["first", "other"] {
        world.put(0, 0, image.as_bytes());
        let report = world.run(&mut server);
        assert_eq!(String::from_utf8_lossy(&report.stdout), format!("start\n{image}\nend\n"));
        assert_eq!(report.end, End::Exited(0));
    }
    // Instead of the shell, not beside it.
    let mut server =
        world.serve_command(&world.command_of(Path::new("/bin/sh"), &["-c", &format!("exec {program} code pool")]));
    for code in [7, 9] {
        world.put(0, 0, &[code]);
        assert_eq!(world.run(&mut server).end, End::Exited(code.into()));
    }
    world.assert_untouched();
}

#[test]
fn a_line_that_is_partly_written_is_read_where_it_is_not() {
    let mut world = World::new();
    world.put(0, 8 * 64, &[0, 30]);
    world.put(0, 9 * 64, &[40]);
    let report = world.once("partly-own", &quick());
    assert_eq!(report.end, End::Exited(30 + 40 + 3 + 2));
    assert_eq!(lines(&report), [8, 9]);
    let mut dirtied: Vec<u64> = report.dirtied.iter().map(|line| line.line.0).collect();
    dirtied.sort_unstable();
    assert_eq!(dirtied, [8, 9, 10]);
}

#[test]
fn large_mappings_are_new_in_every_run() {
    let world = World::new();
    let mut server = world.serve("mappings");
    for _ in 0..3 {
        assert_eq!(world.run(&mut server).end, End::Exited(0));
    }
}

#[test]
fn a_large_heap_ends_where_the_program_put_its_end() {
    let world = World::new();
    let (mut heap, mut end) = (world.serve("heap"), world.serve("heap-end"));
    // The first run shows that the heap becomes large; the others know.
    for _ in 0..3 {
        assert_eq!(world.run(&mut heap).end, End::Exited(0));
        let end = world.run(&mut end).end;
        assert!(matches!(end, End::Signalled { signal: 11, .. }), "{end:?}");
    }
}

#[test]
fn a_command_that_cannot_start_is_an_error_not_a_verdict() {
    let world = World::new();
    let try_with = |program: &str| {
        let slot = Slot::create(&[(world.pool(), POOL_BYTES)]).unwrap();
        let command = world.command_of(Path::new(program), &[]);
        Server::new(&command, &slot).and_then(|mut server| server.run(&slot, &quick()))
    };
    for program in ["/no/such/program", "/etc/passwd"] {
        let answer = try_with(program);
        assert!(matches!(answer, Err(ServerError::Target(_) | ServerError::Launch(_))), "{program}: {answer:?}");
    }
}

#[test]
fn servers_run_beside_each_other() {
    std::thread::scope(|scope| {
        for number in 1..=3u8 {
            scope.spawn(move || {
                let mut world = World::new();
                let mut server = world.serve("code");
                for round in 0..10 {
                    world.put(0, 0, &[number * 20 + round]);
                    assert_eq!(world.run(&mut server).end, End::Exited((number * 20 + round).into()));
                }
            });
        }
    });
}

/// Images that each line has either of the pool before the workload (all zero) or of the pool after it, or garbage.
struct Images {
    whole: Vec<u8>,
    state: u64,
}

impl Images {
    fn next(&mut self) -> Vec<u8> {
        let mut image = self.whole.clone();
        // Few or many.
        let share = 1 << (self.random() % 8);
        for line in image.chunks_mut(64) {
            if self.random().is_multiple_of(share) && line.iter().any(|&byte| byte != 0) {
                match self.random() % 4 {
                    0 => line[self.random() as usize % 64] ^= 1 << (self.random() % 8),
                    _ => line.fill(0),
                }
            }
        }
        image
    }

    /// xorshift64*, Vigna 2016.
    fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
}

/// The end, without what only one of the modes knows.
fn comparable(report: RunReport) -> (String, String, String) {
    let end = match report.end {
        End::Signalled { signal, .. } => format!("signal {signal}"),
        end => format!("{end:?}"),
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (end, text(report.stdout), text(report.stderr))
}

fn compare_with_native(target: &CrashTarget, images: u32) {
    let world = World::new();
    let program = target.build(TWIN, &Path::new(env!("CARGO_TARGET_TMPDIR")).join("crash")).unwrap();
    let workload = world.dir().join("workload");
    let words = target.run_command(&program, &workload);
    let ran = std::process::Command::new(&words[0]).args(&words[1..]).output().unwrap();
    assert!(ran.status.success(), "{}: {ran:?}", target.name);
    let mut source = Images { whole: fs::read(&workload).unwrap(), state: 0x9e37_79b9_7f4a_7c15 };
    let words = target.recover_command(&program, &world.pool());
    let command = world.command_of(&program, &words[1..].iter().map(String::as_str).collect::<Vec<_>>());
    let mut slot = Slot::create(&[(world.pool(), source.whole.len() as u64)]).unwrap();
    let mut server = Server::new(&command, &slot).unwrap();
    let native = Native::new();
    let copy = world.dir().join("copy");
    let mut ends = std::collections::BTreeMap::<String, u32>::new();
    for number in 0..images {
        let image = source.next();
        slot.write(PoolId(0), 0, &image).expect("there is room for a small pool");
        let limits = Limits { wall: std::time::Duration::from_secs(2), ..Limits::default() };
        let served = comparable(server.run(&slot, &limits).unwrap());
        fs::write(&copy, &image).unwrap();
        let plainly = native.run(&command, &[PoolFile { path: world.pool(), content: &copy }], &limits).unwrap();
        assert_eq!(served, comparable(plainly), "{} image {number}", target.name);
        *ends.entry(served.0).or_default() += 1;
    }
    println!("{}: {ends:?}", target.name);
    assert!(ends.len() > 1, "{}: images that all end alike compare nothing: {ends:?}", target.name);
    assert_eq!(fs::read(world.pool()).unwrap(), ORIGINAL);
}

#[test]
fn the_fork_server_says_what_native_mode_says() {
    // The last has a heap and a mapping that are large.
    let names = ["c/array", "c/btree", "c/undo", "pmdk/tx_list"];
    let all = targets::crash::all().unwrap();
    std::thread::scope(|scope| {
        for name in names {
            let target = all.iter().find(|target| target.name == name).expect("a known target");
            scope.spawn(move || compare_with_native(target, 70));
        }
    });
}
