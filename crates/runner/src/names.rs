//! Names of the functions in which runs die, for the report.

use std::cell::RefCell;
use std::collections::HashMap;

use recover::report::RunReport;
use trace::Tables;
use trace::symbol::Symbolizer;
use verdict::end::{End, Frame};

/// More places are not looked up: a program that jumps anywhere dies somewhere else each time.
const MOST: usize = 64;

/// By place, what is known already: reading debug information takes longer than a run.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: RefCell<HashMap<Frame, Option<String>>>,
}

impl Names {
    /// The function of a frame of this run's call path.
    pub fn of(&self, run: &RunReport, frame: &Frame) -> Option<String> {
        if let Some(known) = self.known.borrow().get(frame) {
            return known.clone();
        }
        if self.known.borrow().len() >= MOST {
            return None;
        }
        // All but the innermost are return addresses.
        let returns = !matches!(&run.end, End::Signalled { path, .. } if path.first() == Some(frame));
        let tables = Tables::default();
        let named = Symbolizer::new(&tables).frames_in_file(&frame.module, frame.address, returns);
        let name = named.first().and_then(|innermost| innermost.function.clone());
        self.known.borrow_mut().insert(frame.clone(), name.clone());
        name
    }
}
