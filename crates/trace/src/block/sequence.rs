//! The order of shapes in a block, coded by prediction.
//!
//! What a program does next mostly follows from what it did last: per thread, the last two shapes predict the
//! next one (a small hash table), else one of three shapes that followed the last one most recently. The result is
//! one symbol per event, nearly always 0, which zstd then all but removes. Tables start empty in each block.

/// No shape yet.
pub(crate) const NONE: u16 = u16::MAX;

const FOLLOWERS: usize = 3;
/// Symbols: 0 predicted, then one of the followers, then:
pub(crate) const FRESH: u8 = 1 + FOLLOWERS as u8;
pub(crate) const EXPLICIT: u8 = FRESH + 1;

const TABLE_BITS: u32 = 14;

/// The last shapes of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    last: u16,
    before: u16,
}

impl Default for Past {
    fn default() -> Past {
        Past { last: NONE, before: NONE }
    }
}

#[derive(Debug)]
pub(crate) struct Predictor {
    pairs: Box<[u16; 1 << TABLE_BITS]>,
    /// By last shape, shifted by one so that `NONE` is 0.
    followers: Vec<[u16; FOLLOWERS]>,
}

impl Default for Predictor {
    fn default() -> Predictor {
        Predictor { pairs: Box::new([NONE; 1 << TABLE_BITS]), followers: Vec::new() }
    }
}

impl Predictor {
    pub fn clear(&mut self) {
        self.pairs.fill(NONE);
        self.followers.clear();
        self.followers.push([NONE; FOLLOWERS]);
    }

    #[inline]
    fn slot(past: Past) -> usize {
        let pair = u32::from(past.last) << 16 | u32::from(past.before);
        (pair.wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS)) as usize
    }

    /// A shape occurs for the first time in the block.
    pub fn grow(&mut self) {
        self.followers.push([NONE; FOLLOWERS]);
    }

    /// The symbol for `next`; `fresh`: it is the first of its shape in this block.
    pub fn code(&mut self, past: &mut Past, next: u16, fresh: bool) -> u8 {
        let slot = Predictor::slot(*past);
        let symbol = if self.pairs[slot] == next {
            0
        } else if fresh {
            self.grow();
            FRESH
        } else {
            let followers = &self.followers[usize::from(past.last.wrapping_add(1))];
            followers.iter().position(|&follower| follower == next).map_or(EXPLICIT, |rank| rank as u8 + 1)
        };
        self.learn(past, slot, symbol, next);
        symbol
    }

    /// What `symbol` stands for, if it is one of the predictions. Follow with [`Predictor::took`].
    #[inline]
    pub fn predicted(&self, past: Past, symbol: u8) -> u16 {
        match symbol {
            0 => self.pairs[Predictor::slot(past)],
            rank => self.followers[usize::from(past.last.wrapping_add(1))][usize::from(rank - 1)],
        }
    }

    #[inline]
    pub fn took(&mut self, past: &mut Past, symbol: u8, next: u16) {
        self.learn(past, Predictor::slot(*past), symbol, next);
    }

    #[inline]
    fn learn(&mut self, past: &mut Past, slot: usize, symbol: u8, next: u16) {
        if symbol != 0 {
            self.pairs[slot] = next;
            let followers = &mut self.followers[usize::from(past.last.wrapping_add(1))];
            let rank = followers.iter().position(|&follower| follower == next).unwrap_or(FOLLOWERS - 1);
            followers[..=rank].rotate_right(1);
            followers[0] = next;
        }
        *past = Past { last: next, before: past.last };
    }
}
