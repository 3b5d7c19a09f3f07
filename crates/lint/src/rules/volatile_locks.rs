//! Locks in PM are volatile by design: a restart initialises them anew (PMDK's `PMEMmutex` is made for that). Stores
//! that the lock functions of the C and Rust libraries make are no data.

use finding::finding::Location;

const C_FUNCTIONS: &[&str] = &[
    "pthread_mutex_",
    "pthread_rwlock_",
    "pthread_cond_",
    "pthread_spin_",
    "lll_lock",
    "lll_mutex",
    "lll_unlock",
    "sem_post",
    "sem_wait",
    "sem_init",
];
const RUST_FUNCTIONS: &[&str] = &["::mutex::", "::rwlock::", "::condvar::", "Mutex<", "RwLock<"];

/// Whether a lock function made the store: it is innermost but for what was inlined into it.
pub fn lock_function(frames: &[Location]) -> bool {
    let is_lock = |frame: &Location| {
        frame.function.as_ref().is_some_and(|name| {
            let bare = name.trim_start_matches('_').trim_start_matches("GI_").trim_start_matches('_');
            C_FUNCTIONS.iter().any(|prefix| bare.starts_with(prefix))
                || RUST_FUNCTIONS.iter().any(|part| name.contains(part))
        })
    };
    let innermost = frames.first().map(|frame| (&frame.module, frame.address));
    // The lock function itself, the functions inlined into it, and the function that it called.
    let own = frames.iter().take_while(|frame| Some((&frame.module, frame.address)) == innermost).count();
    frames.iter().take(own + 1).any(is_lock)
}

#[cfg(test)]
mod tests {
    use finding::finding::Role;

    use super::*;

    fn frame(function: &str, address: u64) -> Location {
        let function = Some(function.to_owned());
        Location { role: Role::Store, file: None, line: None, function, module: "libc.so.6".to_owned(), address }
    }

    #[test]
    fn only_the_lock_functions_own_stores_count() {
        assert!(lock_function(&[frame("___pthread_mutex_lock", 1), frame("main", 2)]));
        assert!(lock_function(&[frame("__lll_lock_wait", 1), frame("main", 2)]));
        assert!(!lock_function(&[frame("update", 1), frame("with_lock", 2), frame("pthread_mutex_lock", 3)]));
    }
}
