//! Native mode on small shell programs: what a run does becomes its report, and nothing of it outlives it.

use std::fs;
use std::path::Path;
use std::process;
use std::time::Duration;

use crate::native_world::{World, crash, quick};
use recover::command::Input;
use recover::limits::Limits;
use recover::native::{Isolation, Method, Namespaces, Native, NativeError};
use verdict::end::{End, Limit};

#[test]
fn exit_code_and_output_are_reported() {
    let report = World::new().run("cat; cat pool; echo wrong >&2; exit 3", &quick());
    assert_eq!(report.end, End::Exited(3));
    assert_eq!(report.stdout, b"image\n");
    assert_eq!(report.stderr, b"wrong\n");
    assert!(!report.output_cut && !report.pools_replaced);
}

#[test]
fn a_fatal_signal_is_reported() {
    assert_eq!(World::new().run("kill -SEGV $$", &quick()).end, crash(libc::SIGSEGV));
}

#[test]
fn standard_input_is_what_the_command_says() {
    let world = World::new();
    let mut command = world.shell("cat");
    command.stdin = Input::Bytes(b"one\ntwo\n".into());
    assert_eq!(world.run_command(&command, &quick()).stdout, b"one\ntwo\n");
    fs::write(world.dir().join("input"), b"three\n").unwrap();
    command.stdin = Input::File(world.dir().join("input"));
    assert_eq!(world.run_command(&command, &quick()).stdout, b"three\n");
}

#[test]
fn a_hang_is_a_verdict() {
    let limits = Limits { wall: Duration::from_millis(300), ..Limits::default() };
    for script in ["sleep 1000", "while :; do :; done", "sleep 1000 & sleep 1000 & wait"] {
        assert_eq!(World::new().run(script, &limits).end, End::Hung, "{script}");
    }
}

#[test]
fn cpu_time_has_a_limit() {
    let limits = Limits { cpu: Duration::from_millis(100), ..Limits::default() };
    assert_eq!(World::new().run("while :; do :; done", &limits).end, End::OverLimit(Limit::Cpu));
    assert_eq!(World::new().run("(while :; do :; done)& wait", &limits).end, End::OverLimit(Limit::Cpu));
}

#[test]
fn memory_has_a_limit() {
    let limits = Limits { memory: 64 << 20, ..Limits::default() };
    // `tail` keeps the last line, which has no end here.
    let report = World::new().run("tail -n 1 </dev/zero", &limits);
    assert_eq!(report.end, End::OverLimit(Limit::Memory));
}

#[test]
fn shared_memory_counts_once() {
    // A shell of some ten megabytes and its copies.
    let grow = "x=$(head -c 20000000 /dev/zero | tr '\\0' x)";
    let work = "j=0; while [ $j -lt 50000 ]; do j=$((j+1)); done";
    let script = format!("{grow}; for i in 1 2 3 4 5 6; do ({work}) & done; wait");
    let limits = Limits { memory: 110 << 20, ..Limits::default() };
    assert_eq!(World::new().run(&script, &limits).end, End::Exited(0));
}

#[test]
fn a_fork_bomb_ends_at_its_limit() {
    let limits = Limits { processes: 20, ..Limits::default() };
    let report = World::new().run("f() { sleep 1000 & f; }; f", &limits);
    assert_eq!(report.end, End::OverLimit(Limit::Processes));
    let report = World::new().run("b() { b & b & wait; }; b", &limits);
    assert_eq!(report.end, End::OverLimit(Limit::Processes));
}

#[test]
fn output_is_cut_and_a_flood_ends_the_run() {
    let limits = Limits { output: 1000, ..Limits::default() };
    let report = World::new().run("head -c 5000 /dev/zero; echo end >&2", &limits);
    assert_eq!((report.end, report.stdout.len(), report.output_cut), (End::Exited(0), 1000, true));
    assert_eq!(report.stderr, b"end\n");
    let report = World::new().run("yes", &limits);
    assert_eq!((report.end, report.stdout.len()), (End::OverLimit(Limit::Output), 1000));
}

#[test]
fn a_background_process_ends_with_the_run() {
    let world = World::new();
    let report = world.run("(sleep 1000 & exec setsid sleep 1000) & exit 0", &quick());
    assert_eq!(report.end, End::Exited(0));
    assert_eq!(world.processes_that_know_it(), 0);
}

#[test]
fn a_daemon_may_finish_its_work() {
    let world = World::new();
    let report = world.run("(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done >pool)& exit 0", &quick());
    assert_eq!(report.end, End::Exited(0));
    assert_eq!(fs::read(world.image()).unwrap(), b"done\n");
}

#[test]
fn a_daemon_that_crashes_is_a_crash() {
    // It crashes only after the first process has ended, and so after its parent has.
    let script = "first=$$; (while kill -0 $first; do :; done; exec sh -c 'kill -ABRT $$') 2>/dev/null & exit 0";
    assert_eq!(World::new().run(script, &quick()).end, crash(libc::SIGABRT));
}

#[test]
fn recovery_may_delete_rename_and_create_and_the_original_stays() {
    for script in ["rm pool", "mv pool old; echo new >pool", "rm pool; echo new >pool; mkdir d; echo x >other/file"] {
        let world = World::new();
        let report = world.run(script, &quick());
        assert_eq!(report.end, End::Exited(0), "{script}: {}", String::from_utf8_lossy(&report.stderr));
        assert!(report.pools_replaced, "{script}");
        world.assert_untouched();
    }
}

#[test]
fn a_checker_sees_what_recovery_left() {
    let world = World::new();
    let mut session = world.session();
    let recovery = session.run(&world.shell("echo recovered >pool; echo more >beside"), &quick()).unwrap();
    assert_eq!(recovery.end, End::Exited(0));
    assert_eq!(fs::read(session.content(0).unwrap()).unwrap(), b"recovered\n");
    let checker = session.run(&world.shell("cat pool beside"), &quick()).unwrap();
    assert_eq!(checker.stdout, b"recovered\nmore\n");
    let deleting = session.run(&world.shell("rm pool"), &quick()).unwrap();
    assert!(deleting.pools_replaced && !checker.pools_replaced);
    assert_eq!(session.content(0), None);
    assert_eq!(session.run(&world.shell("cat pool"), &quick()).unwrap().end, End::Exited(1));
    drop(session);
    world.assert_untouched();
}

#[test]
fn a_pool_that_is_no_longer_there_can_be_recovered() {
    let world = World::new();
    fs::remove_file(world.pool()).unwrap();
    assert_eq!(world.run("cat pool", &quick()).stdout, b"image\n");
    assert!(!world.pool().exists());
}

#[test]
fn a_link_leads_to_the_pool() {
    let world = World::new();
    let link = world.dir().join("link");
    std::os::unix::fs::symlink(world.pool(), &link).unwrap();
    let report = world.run_with(&world.shell("cat ../link; cat pool"), &[(link, world.image())], &quick());
    assert_eq!(report.stdout, b"image\nimage\n");
}

#[test]
fn pools_in_one_directory_and_beneath_each_other() {
    let world = World::new();
    let names = ["pool", "second", "other/third"];
    let pools: Vec<_> = names
        .iter()
        .map(|name| {
            let image = world.dir().join(name.replace('/', "-"));
            fs::write(&image, format!("image of {name}\n")).unwrap();
            (world.pool().with_file_name("").join(name), image)
        })
        .collect();
    let report = world.run_with(&world.shell("cat pool second other/third; rm other/third"), &pools, &quick());
    assert_eq!(String::from_utf8_lossy(&report.stdout), "image of pool\nimage of second\nimage of other/third\n");
    assert!(report.pools_replaced);
    world.assert_untouched();
}

#[test]
fn the_program_may_lie_beside_its_pool() {
    let world = World::new();
    let program = world.pool().with_file_name("recover.sh");
    crate::native_world::script(&program, "#!/bin/sh\ncat pool\n");
    let mut command = world.shell("");
    command.program = "./recover.sh".into();
    command.args.clear();
    assert_eq!(world.run_command(&command, &quick()).stdout, b"image\n");
}

#[test]
fn images_may_lie_in_the_pools_directory() {
    let world = World::new();
    let image = world.pool().with_file_name("image");
    fs::write(&image, b"near\n").unwrap();
    let report = world.run_with(&world.shell("cat pool; ls; rm pool"), &[(world.pool(), image)], &quick());
    assert!(report.stdout.starts_with(b"near\n"));
    assert_eq!(report.end, End::Exited(0));
    world.assert_untouched();
}

#[test]
fn sessions_run_beside_each_other() {
    let world = World::new();
    let native = Native::new();
    let rooms = native.isolation().method != Method::Swap;
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (world, native) = (&world, &native);
            scope.spawn(move || {
                let image = world.dir().join(format!("image{number}"));
                for round in 0..5 {
                    fs::write(&image, format!("{number} {round}\n")).unwrap();
                    let pools = [recover::native::PoolFile { path: world.pool(), content: &image }];
                    let mut session = native.session(&pools).unwrap();
                    let first = session.run(&world.shell("cat pool; echo x >>pool"), &quick()).unwrap();
                    assert_eq!(String::from_utf8_lossy(&first.stdout), format!("{number} {round}\n"));
                    let second = session.run(&world.shell("cat pool"), &quick()).unwrap();
                    assert_eq!(String::from_utf8_lossy(&second.stdout), format!("{number} {round}\nx\n"));
                }
            });
        }
    });
    assert!(rooms || !world.pool().with_file_name(".pool.fencepost-swap").exists());
    world.assert_untouched();
}

#[test]
fn every_lesser_isolation_serves_as_well() {
    let best = Isolation::detect();
    let mut tried = Vec::new();
    for method in [Method::Overlay, Method::Bind, Method::Swap].into_iter().filter(|&method| method >= best.method) {
        for namespaces in [best.namespaces, Namespaces { pid: false, ..best.namespaces }, Namespaces::NONE] {
            if method != Method::Swap && !namespaces.mount {
                continue;
            }
            let world = World::with(Native::with(Isolation { method, namespaces, refused: Vec::new() }));
            let mut session = world.session();
            let report = session.run(&world.shell("cat pool; echo new >pool; sleep 1000 & exit 2"), &quick()).unwrap();
            assert_eq!((report.end, report.stdout), (End::Exited(2), b"image\n".to_vec()), "{method:?} {namespaces}");
            assert_eq!(fs::read(session.content(0).unwrap()).unwrap(), b"new\n");
            assert_eq!(session.isolation().method, method);
            let limits = Limits { wall: Duration::from_millis(200), ..Limits::default() };
            let hung = session.run(&world.shell("(sleep 1000 & sleep 1000) & sleep 1000"), &limits).unwrap();
            assert_eq!(hung.end, End::Hung);
            assert_eq!(world.processes_that_know_it(), 0);
            drop(session);
            world.assert_untouched();
            tried.push(method);
        }
    }
    assert!(tried.contains(&Method::Swap));
}

#[test]
fn a_refused_mount_falls_back_to_the_next_method() {
    // Without a mount namespace of its own an ordinary user may not mount; root would mount for everybody.
    let best = Isolation::detect();
    if best.method == Method::Swap {
        return targets::skip("this system allows no mounts at all");
    }
    let world = World::with(Native::with(Isolation { method: Method::Bind, ..best }));
    fs::remove_file(world.pool()).unwrap();
    let mut session = world.session();
    assert_eq!(session.isolation().method, Method::Swap);
    assert_eq!(session.run(&world.shell("cat pool"), &quick()).unwrap().stdout, b"image\n");
    drop(session);
    assert!(!world.pool().exists());
}

#[test]
fn a_command_that_cannot_start_is_an_error_not_a_verdict() {
    let world = World::new();
    let try_with = |change: &dyn Fn(&mut recover::command::Command)| {
        let mut command = world.shell("true");
        change(&mut command);
        world.session().run(&command, &quick()).unwrap_err()
    };
    assert!(matches!(try_with(&|c| c.program = "no-such-program".into()), NativeError::NoProgram { .. }));
    assert!(matches!(try_with(&|c| c.program = "/etc/passwd".into()), NativeError::Exec { .. }));
    assert!(matches!(try_with(&|c| c.dir = "/no/such/directory".into()), NativeError::Directory { .. }));
    assert!(matches!(try_with(&|c| c.stdin = Input::File("/no/such/file".into())), NativeError::Input { .. }));
    assert!(matches!(try_with(&|c| c.args.push("a\0b".into())), NativeError::Word { .. }));
}

#[test]
fn the_run_ends_with_the_process_that_asked_for_it() {
    if std::env::var_os("NATIVE_TEST_VICTIM").is_some() {
        return;
    }
    let world = World::new();
    let mut host = crate::native_world::this_test("a_run_that_never_ends")
        .env("NATIVE_TEST_VICTIM", world.dir())
        .stdout(process::Stdio::null())
        .spawn()
        .unwrap();
    world.wait_for_marker();
    host.kill().unwrap();
    host.wait().unwrap();
    world.wait_until_forgotten();
}

/// Not a test of its own: what the ones around it start and kill.
#[test]
fn a_run_that_never_ends() {
    let Some(dir) = std::env::var_os("NATIVE_TEST_VICTIM") else { return };
    let swap = Isolation { method: Method::Swap, namespaces: Namespaces::NONE, refused: Vec::new() };
    let native = if std::env::var_os("NATIVE_TEST_SWAP").is_some() { Native::with(swap) } else { Native::new() };
    let world = World::at(Path::new(&dir), native);
    let limits = Limits { wall: Duration::from_secs(1000), ..Limits::default() };
    world.run("sleep 1000 & (setsid sleep 1000 &) ; echo >\"$MARKER\"; sleep 1000", &limits);
}

#[test]
fn a_swapped_pool_comes_back_when_the_host_is_killed() {
    if std::env::var_os("NATIVE_TEST_VICTIM").is_some() {
        return;
    }
    for existed in [true, false] {
        let world = World::new();
        if !existed {
            fs::remove_file(world.pool()).unwrap();
        }
        let mut host = crate::native_world::this_test("a_run_that_never_ends")
            .env("NATIVE_TEST_VICTIM", world.dir())
            .env("NATIVE_TEST_SWAP", "1")
            .stdout(process::Stdio::null())
            .spawn()
            .unwrap();
        world.wait_for_marker();
        assert_eq!(fs::read(world.pool()).unwrap(), b"image\n");
        host.kill().unwrap();
        host.wait().unwrap();
        world.wait_until_forgotten();
        world.wait_until_journal_is_gone();
        assert_eq!(fs::read(world.pool()).ok(), existed.then(|| b"original\n".to_vec()));
        assert!(!recover::native::repair(&world.pool()).unwrap());
    }
}

#[test]
fn an_attended_command_has_our_streams_and_its_exit_code() {
    let world = World::new();
    let mut session = world.session();
    assert_eq!(session.attend(&world.shell("read x <pool; test $x = image && exit 7")).unwrap(), 7);
    assert_eq!(session.attend(&world.shell("kill -TERM $$")).unwrap(), 128 + libc::SIGTERM);
    drop(session);
    world.assert_untouched();
}

#[test]
fn an_ordinary_user_can_do_all_this() {
    // SAFETY: cannot fail, no side effects.
    if unsafe { libc::geteuid() } != 0 || std::env::var_os("NATIVE_TEST_ORDINARY").is_some() {
        // The other tests ran as an ordinary user.
        return;
    }
    match crate::native_world::as_nobody(&["native::", "--skip", "an_ordinary_user"]) {
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && told.contains("native::the_program_may_lie_beside_its_pool ... ok"),
                "{told}"
            );
        }
        Err(reason) => targets::skip(reason),
    }
}
