//! Locks in PM are volatile by design: a restart initialises them anew (PMDK's `PMEMmutex` is made for that). Stores
//! that the lock functions of the C and Rust libraries make are no data.

use finding::finding::Location;

const C_FUNCTIONS: &[&str] = &[
    "pthread_mutex_",
    "pthread_rwlock_",
    "pthread_cond_",
    "pthread_barrier_",
    "pthread_spin_",
    "condvar_",
    "lll_lock",
    "lll_mutex",
    "lll_unlock",
    "sem_post",
    "sem_wait",
    "sem_trywait",
    "sem_timedwait",
    "sem_clockwait",
    "sem_init",
];
/// What glibc puts before the names of its functions, inside.
const PREFIXES: &[&str] = &["_", "GI_", "new_", "old_"];
const RUST_FUNCTIONS: &[&str] = &["::mutex::", "::rwlock::", "::condvar::", "Mutex<", "RwLock<"];

/// Whether a lock function made the store: it is innermost but for what was inlined into it and for inner functions.
pub fn lock_function(frames: &[Location]) -> bool {
    let is_lock = |name: &str| {
        C_FUNCTIONS.iter().any(|prefix| bare(name).starts_with(prefix))
            || RUST_FUNCTIONS.iter().any(|part| name.contains(part))
    };
    let Some(innermost) = frames.first() else { return false };
    // The functions inlined into one another at the store, and what has called them inside its own library, which gives names only to
    // what others may call.
    let own = |frame: &&Location| {
        frame.module == innermost.module && (frame.address == innermost.address || frame.function.is_none())
    };
    let own = frames.iter().take_while(own).count();
    // And the function that it called.
    frames.iter().take(own + 1).filter_map(|frame| frame.function.as_deref()).any(is_lock)
}

fn bare(name: &str) -> &str {
    let shorter = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    shorter.map_or(name, bare)
}

#[cfg(test)]
mod tests {
    use finding::finding::Role;

    use super::*;

    fn frame(function: &str, address: u64) -> Location {
        let function = (!function.is_empty()).then(|| function.to_owned());
        Location { role: Role::Store, file: None, line: None, function, module: "libc.so.6".to_owned(), address }
    }

    #[test]
    fn only_the_lock_functions_own_stores_count() {
        assert!(lock_function(&[frame("___pthread_mutex_lock", 1), frame("main", 2)]));
        assert!(lock_function(&[frame("__lll_lock_wait", 1), frame("main", 2)]));
        assert!(lock_function(&[frame("__new_sem_post", 1), frame("main", 2)]));
        assert!(!lock_function(&[frame("update", 1), frame("with_lock", 2), frame("pthread_mutex_lock", 3)]));
    }
    #[test]
    fn inner_functions_without_names_are_their_callers() {
        assert!(lock_function(&[frame("", 1), frame("", 2), frame("pthread_cond_wait", 3), frame("main", 4)]));
        assert!(!lock_function(&[frame("", 1), frame("", 2), frame("fwrite", 3), frame("pthread_mutex_lock", 4)]));
        let stripped = Location { module: "app".to_owned(), ..frame("", 1) };
        assert!(!lock_function(&[stripped, frame("", 2), frame("pthread_mutex_lock", 3)]));
        assert!(!lock_function(&[]));
    }
}
