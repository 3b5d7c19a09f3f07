//! State that the callbacks share. The guest has one processor: QEMU calls everything here from its one thread, after `qemu_plugin_install`.

use std::cell::UnsafeCell;
use std::collections::HashMap;

use qemu_plugin_sys::{qemu_plugin_scoreboard_new, qemu_plugin_u64, qemu_plugin_u64_set};
use wire::guest;

use crate::edges::Edges;
use crate::registers::Registers;
use crate::ring::Ring;
use crate::stacks::Stacks;
use crate::translate::Instruction;

/// The arguments of the plugin.
#[derive(Debug, Default)]
pub struct Settings {
    pub ring: String,
    /// Length of the PM region.
    pub pm: u64,
}

impl Settings {
    /// `ring=PATH`, `pm=BYTES`.
    pub fn parse(words: impl Iterator<Item = String>) -> Option<Settings> {
        let mut settings = Settings::default();
        for word in words {
            match word.split_once('=')? {
                ("ring", path) => settings.ring = path.to_owned(),
                ("pm", bytes) => settings.pm = bytes.parse().ok()?,
                _ => return None,
            }
        }
        (!settings.ring.is_empty() && settings.pm > 0).then_some(settings)
    }
}

/// What the host wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Quiet,
    Record,
    Observe,
    Cover,
}

/// A line was loaded, was stored to, in this observation.
pub const READ: u8 = 1;
pub const WROTE: u8 = 2;

pub const RECORDING: u64 = 1;
pub const COVERING: u64 = 2;

pub struct State {
    pub ring: Ring,
    pub mode: Mode,
    pub pm: u64,
    pub mark_at: u64,
    pub registers: Registers,
    pub stacks: Stacks,
    pub instructions: HashMap<u64, &'static Instruction>,
    /// By line: `READ`, `WROTE`; and which lines have one of them.
    pub lines: Vec<u8>,
    pub touched: Vec<u32>,
    /// [`RECORDING`]: calls are followed; [`COVERING`]: blocks are.
    pub following: qemu_plugin_u64,
    pub edges: Edges,
}

impl State {
    pub fn open(settings: &Settings) -> Option<State> {
        // SAFETY: a call without conditions.
        let score = unsafe { qemu_plugin_scoreboard_new(8) };
        Some(State {
            ring: Ring::open(&settings.ring)?,
            mode: Mode::Quiet,
            pm: settings.pm,
            mark_at: guest::mailbox(settings.pm) + guest::MARK_AT,
            registers: Registers::default(),
            stacks: Stacks::default(),
            instructions: HashMap::new(),
            lines: vec![0; settings.pm.div_ceil(64) as usize],
            touched: Vec::new(),
            following: qemu_plugin_u64 { score, offset: 0 },
            edges: Edges::default(),
        })
    }

    pub fn switch(&mut self, mode: Mode) {
        self.mode = mode;
        self.stacks.clear();
        for line in self.touched.drain(..) {
            self.lines[line as usize] = 0;
        }
        let following = match mode {
            Mode::Record => RECORDING,
            Mode::Cover => COVERING,
            Mode::Quiet | Mode::Observe => 0,
        };
        if mode == Mode::Cover {
            self.edges.set_code(self.ring.code());
        }
        // SAFETY: the score board was made by `open` and has one processor.
        unsafe { qemu_plugin_u64_set(self.following, 0, following) };
    }
}

struct Shared(UnsafeCell<Option<State>>);

// SAFETY: only QEMU's one processor thread uses it (see above).
unsafe impl Sync for Shared {}

static STATE: Shared = Shared(UnsafeCell::new(None));

/// Once, before any callback is registered.
pub fn set(state: State) {
    // SAFETY: no callback runs yet.
    unsafe { *STATE.0.get() = Some(state) };
}

/// Runs a callback's body with the state. Callbacks do not nest.
pub fn with<R>(body: impl FnOnce(&mut State) -> R) -> Option<R> {
    // SAFETY: one thread, and no body calls back into QEMU in a way that runs another callback.
    unsafe { (*STATE.0.get()).as_mut() }.map(body)
}
