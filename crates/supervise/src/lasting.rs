//! A thread that lasts as long as this process.
//!
//! The kernel sends a child its "parent death signal" when the *thread* that started it ends (prctl(2)). A process that shall
//! live on must not be started by a thread that may end before it.

use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

fn jobs() -> &'static Sender<Job> {
    static JOBS: OnceLock<Sender<Job>> = OnceLock::new();
    JOBS.get_or_init(|| {
        let (sender, receiver) = channel::<Job>();
        thread::Builder::new()
            .name("launcher".to_owned())
            .spawn(move || receiver.into_iter().for_each(|job| job()))
            .expect("a thread can be started");
        sender
    })
}

/// Runs `work` on the lasting thread and waits for it.
pub(crate) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let (done, result) = channel();
    let job: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
        // The other side waits as long as this thread lives.
        let _ = done.send(work());
    });
    // SAFETY: the job is over, and what it borrows no longer used, when `recv` returns: it either sends, or is dropped by
    // a panic, which drops `done` as well. The lasting thread keeps nothing of it.
    let job = unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + '_>, Job>(job) };
    jobs().send(job).expect("the launcher lives as long as the process");
    result.recv().expect("the launcher does not panic")
}
