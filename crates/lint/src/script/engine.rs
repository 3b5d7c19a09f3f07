//! The script engine with its limits: whatever a script does, it comes to an end, and with a clear error.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rhai::{Dynamic, Engine, EvalAltResult};

/// Steps of the interpreter for one event. A loop over ten thousand things takes about a hundred thousand.
const OPERATIONS: u64 = 1_000_000;
const CALL_LEVELS: usize = 48;
const EXPRESSION_DEPTH: usize = 64;
/// Characters of a string, entries of an array or map.
const SIZE: usize = 1 << 16;
/// Time for one event. Steps can be long: the engine measures large data again and again.
const TIME: Duration = Duration::from_secs(10);
/// The clock is read every so many steps.
const CLOCK_STEPS: u64 = 256;

/// What the script reported about the present event: the words, if it has its own.
pub(super) type Reports = Rc<RefCell<Vec<Option<String>>>>;

pub(super) fn engine() -> (Engine, Reports) {
    let mut engine = Engine::new();
    engine
        .set_max_operations(OPERATIONS)
        .set_max_call_levels(CALL_LEVELS)
        .set_max_expr_depths(EXPRESSION_DEPTH, EXPRESSION_DEPTH)
        .set_max_string_size(SIZE)
        .set_max_array_size(SIZE)
        .set_max_map_size(SIZE)
        .disable_symbol("eval")
        .on_print(|text| eprintln!("{text}"));
    let started = Cell::new(Instant::now());
    engine.on_progress(move |steps| {
        if steps <= 1 {
            started.set(Instant::now());
        }
        let late = steps.is_multiple_of(CLOCK_STEPS) && started.get().elapsed() > TIME;
        late.then_some(Dynamic::UNIT)
    });
    // Would wait where no limit sees it.
    engine.register_fn("sleep", |_: rhai::INT| no_waiting());
    engine.register_fn("sleep", |_: rhai::FLOAT| no_waiting());
    let reports = Reports::default();
    let silent = Rc::clone(&reports);
    engine.register_fn("report", move || silent.borrow_mut().push(None));
    let worded = Rc::clone(&reports);
    engine.register_fn("report", move |text: &str| worded.borrow_mut().push(Some(text.to_owned())));
    (engine, reports)
}

fn no_waiting() -> Result<(), Box<EvalAltResult>> {
    Err("a rule cannot wait: there is no sleep".into())
}

/// An error in words for people who do not know the engine.
pub(super) fn explain(error: &EvalAltResult) -> String {
    match innermost(error) {
        // The engine does not say where.
        EvalAltResult::ErrorTooManyOperations(_) => {
            format!("the script took more than {OPERATIONS} steps for one event: is there a loop that does not end?")
        }
        EvalAltResult::ErrorStackOverflow(position) => format!(
            "the script's functions call each other more than {CALL_LEVELS} deep ({position}): \
             is there a recursion that does not end?"
        ),
        EvalAltResult::ErrorTerminated(_, position) => {
            format!("the script took longer than {} s for one event ({position})", TIME.as_secs())
        }
        EvalAltResult::ErrorDataTooLarge(what, position) => {
            format!("the script's data has grown beyond {SIZE} entries ({what}, {position}): does it ever forget?")
        }
        _ => error.to_string(),
    }
}

/// Errors inside functions are wrapped once per call.
fn innermost(error: &EvalAltResult) -> &EvalAltResult {
    match error {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _) => innermost(inner),
        error => error,
    }
}

/// A number of the trace as a script sees it: the same 64 bits, signed.
pub(super) fn number(value: u64) -> Dynamic {
    Dynamic::from_int(value as i64)
}
