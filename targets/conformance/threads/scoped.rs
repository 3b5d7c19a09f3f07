//@ build: rust
//@ cflags: -O
//@ compare: unordered
// Rust threads in a scope: each fills its own part of the pool, a channel returns the sums.
include!("../pm.rs");
use std::sync::mpsc;

fn main() {
    let pm = create(&argument(1), 65536);
    // SAFETY: the pool is mapped for the whole run and nothing else refers to it.
    let words = unsafe { std::slice::from_raw_parts_mut(pm.cast::<u64>(), 8192) };
    let (sums, results) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (n, part) in words.chunks_mut(2048).enumerate() {
            let sums = sums.clone();
            threads.push(scope.spawn(move || {
                for (i, word) in part.iter_mut().take(40).enumerate() {
                    // SAFETY: a reference to a word of the pool.
                    unsafe { std::ptr::write_volatile(word, (n * 100 + i) as u64) }
                }
                sums.send(part.iter().sum::<u64>()).expect("the receiver lives");
            }));
        }
        // The scope alone waits for the closures only: whether the threads have ended by then is a matter of luck.
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
    drop(sums);
    assert_eq!(results.iter().sum::<u64>(), 4 * 780 + 40 * 600);
}
