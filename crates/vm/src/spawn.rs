//! Starts QEMU so that it ends with this process, however that ends.
//!
//! The kernel sends its parent-death signal when the *thread* that forked ends, and workers come and go. So one thread, which
//! lives as long as the process, starts all guests.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Order = (Command, Sender<io::Result<Child>>);

/// As `Command::spawn`; the child is killed when this process ends, also by `kill -9`.
pub fn spawn(mut command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Sender<Order>> = OnceLock::new();
    // SAFETY: both calls are safe between fork and exec. A group of its own: Ctrl-C is ours to handle.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::setpgid(0, 0);
            Ok(())
        });
    }
    let starter = STARTER.get_or_init(|| {
        let (send, orders) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in orders {
                // Nobody may wait for the answer any more.
                let _ = answer.send(command.spawn());
            }
        });
        send
    });
    let (answer, child) = channel();
    let gone = || io::Error::other("the thread that starts guests has ended");
    starter.send((command, answer)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}
