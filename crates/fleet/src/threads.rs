//! Units on threads of this process.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::dispatch::{Dispatch, Fate, Watch};

/// Performs units, one after the other.
pub trait Work<U> {
    type Done;
    type Error;

    fn work(&mut self, unit: &U) -> Result<Self::Done, Self::Error>;
}

/// One thread for each of these.
#[derive(Debug)]
pub struct Threads<'w, W>(pub &'w mut [W]);

impl<U: Sync, W: Work<U> + Send> Dispatch<U, W::Done> for Threads<'_, W>
where
    W::Error: Send,
{
    type Error = W::Error;

    fn dispatch(&mut self, units: &[U], watch: &Watch<'_, W::Done, W::Error>) -> Result<(), W::Error> {
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let go = |worker: &mut W| -> Result<(), W::Error> {
            while !failed.load(Ordering::Relaxed) && !(watch.is_stopped)() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(unit) = units.get(number) else { break };
                let done = worker.work(unit);
                let taken = done.and_then(|done| (watch.take)(number, Fate::Done(done)));
                taken.inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            }
            Ok(())
        };
        let results: Vec<Result<(), W::Error>> = std::thread::scope(|scope| {
            let go = &go;
            let threads: Vec<_> = self.0.iter_mut().map(|worker| scope.spawn(move || go(worker))).collect();
            let joined = threads.into_iter().map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect()
        });
        results.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Squares;

    impl Work<u64> for Squares {
        type Done = u64;
        type Error = String;

        fn work(&mut self, unit: &u64) -> Result<u64, String> {
            if *unit == 13 { Err("unlucky".into()) } else { Ok(unit * unit) }
        }
    }

    fn run(units: &[u64], workers: usize, is_stopped: &(dyn Fn() -> bool + Sync)) -> (Result<(), String>, Vec<u64>) {
        let results = Mutex::new(vec![None; units.len()]);
        let take = |number: usize, fate: Fate<u64>| {
            let Fate::Done(done) = fate else { return Err("set aside".into()) };
            assert_eq!(results.lock().unwrap()[number].replace(done), None, "told once");
            Ok(())
        };
        let mut workers: Vec<Squares> = (0..workers).map(|_| Squares).collect();
        let ended = Threads(&mut workers).dispatch(units, &Watch { is_stopped, take: &take });
        (ended, results.into_inner().unwrap().into_iter().flatten().collect())
    }

    #[test]
    fn every_unit_is_performed_once_whatever_the_number_of_threads() {
        let units: Vec<u64> = (0..13).collect();
        for workers in [1, 2, 7] {
            assert_eq!(run(&units, workers, &|| false), (Ok(()), units.iter().map(|unit| unit * unit).collect()));
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        let units: Vec<u64> = (13..5000).collect();
        let (ended, done) = run(&units, 1, &|| false);
        assert_eq!((ended, done.len()), (Err("unlucky".into()), 0));
    }

    #[test]
    fn nothing_is_begun_after_a_stop() {
        assert_eq!(run(&[1, 2, 3], 2, &|| true), (Ok(()), Vec::new()));
    }
}
