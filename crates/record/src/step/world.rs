//! The virtual clock, counter and random source of a recording: the state behind [`wire::virtual_time`].

use wire::virtual_time as vt;

/// One per recording, shared by all processes.
#[derive(Clone, Debug)]
pub struct World {
    ns: u64,
    /// Real time of all long waits for somebody else.
    waited: u64,
    /// Queries since the last wait.
    queries: u64,
    tsc: u64,
    random: u64,
}

impl Default for World {
    fn default() -> World {
        World { ns: 0, waited: 0, queries: 0, tsc: vt::VIRTUAL_TSC_START, random: vt::RANDOM_SEED }
    }
}

impl World {
    /// What `clock` shows.
    pub fn clock(&mut self, clock: i32) -> u64 {
        let shown = vt::clock_ns(clock, self.ns);
        self.ns = vt::after_sleep(self.ns, vt::query_ns(self.queries));
        self.queries += 1;
        shown
    }

    pub fn sleep(&mut self, ns: u64) {
        self.queries = 0;
        self.ns = vt::after_sleep(self.ns, ns);
    }

    /// A wait that somebody else ended, in real time.
    pub fn waited_for_others(&mut self, ns: u64) {
        let before = self.waited;
        self.waited = before.saturating_add(ns);
        self.sleep((self.waited / vt::WAIT_STEP_NS - before / vt::WAIT_STEP_NS) * vt::WAIT_STEP_NS);
    }

    pub fn sleep_until(&mut self, clock: i32, ns: u64) {
        self.queries = 0;
        self.ns = vt::after_sleep_until(self.ns, clock, ns);
    }

    pub fn time_stamp(&mut self) -> u64 {
        let shown = self.tsc;
        self.tsc = vt::after_rdtsc(self.tsc);
        shown
    }

    pub fn random_bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.random = vt::fill_random(self.random, &mut bytes);
        bytes
    }

    pub fn random_word(&mut self) -> u64 {
        let (word, next) = vt::random_word(self.random);
        self.random = next;
        word
    }
}
