//! A walk over a trace: at each place that it stops at, what is guaranteed and what is pending.

use std::cell::RefCell;
use std::sync::Arc;

use persistency::domain::Detail;
use persistency::effect::Effect;
use persistency::model::{Fences, ModelKind};
use persistency::tracker::Tracker;
use serde::{Deserialize, Serialize};
use trace::event::{EventId, EventKind};
use trace::{Event, Events, NearEvents, ReadError, TraceReader};

use crate::assumed::{AssumedRepairs, Assuming};
use crate::chosen::Chosen;
use crate::image::GuaranteedImage;
use crate::newest::NewestContents;
use crate::view::PointView;
use verdict::position::CrashPositions;

/// By which rules stores become guaranteed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    #[serde(with = "crate::names::model")]
    pub model: ModelKind,
    #[serde(with = "crate::names::fences")]
    pub fences: Fences,
}

impl Rules {
    fn tracker(self) -> Tracker {
        Tracker::new(self.model.build(self.fences), Detail::Bytes)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules { model: ModelKind::X86Adr, fences: Fences::All }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("event {} writes beyond the end of any file; the trace cannot be replayed: record it again", .event.0)]
    OutOfRange { event: EventId },
    #[error("the walk is at event {} already and cannot go back to {}; start another", .at.0, .wanted.0)]
    Behind { at: EventId, wanted: EventId },
}

/// A place of a walk from which others can begin, see [`crate::checkpoints`].
#[derive(Debug)]
pub(crate) struct Checkpoint {
    rules: Rules,
    tracker: Tracker,
    guaranteed: GuaranteedImage,
    assuming: Assuming,
    at: EventId,
    fresh_from: EventId,
    operation_from: EventId,
}

impl Checkpoint {
    /// How many pages of pools have changed between the two.
    pub fn pages_not_shared(&self, other: &Checkpoint) -> usize {
        self.guaranteed.pages_not_shared(&other.guaranteed)
    }
}

/// Where a walk takes its events from.
#[derive(Debug)]
enum Source<'r> {
    /// It began at the beginning.
    Whole(Box<Events<'r>>),
    /// It began at a checkpoint, as others did and will.
    Near(NearEvents<'r>),
}

impl Source<'_> {
    fn next(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        match self {
            Source::Whole(events) => events.next(),
            Source::Near(events) => Ok(events.next_with_id()?.map(|(_, event)| event)),
        }
    }
}

/// Goes forward through a trace.
#[derive(Debug)]
pub struct Walk<'r> {
    reader: &'r TraceReader,
    rules: Rules,
    events: Source<'r>,
    tracker: Tracker,
    guaranteed: GuaranteedImage,
    newest: RefCell<NewestContents>,
    at: EventId,
    chosen: Arc<Chosen>,
    assuming: Assuming,
    /// See [`fresh_from`](Self::fresh_from).
    fresh_from: EventId,
    /// Where the last operation begins.
    operation_from: EventId,
}

impl<'r> Walk<'r> {
    pub fn new(reader: &'r TraceReader, rules: Rules) -> Result<Self, WalkError> {
        Ok(Walk {
            reader,
            rules,
            events: Source::Whole(Box::new(reader.events())),
            tracker: rules.tracker(),
            guaranteed: GuaranteedImage::initial(reader)?,
            newest: RefCell::default(),
            at: EventId(0),
            chosen: Arc::default(),
            assuming: Assuming::default(),
            fresh_from: EventId(0),
            operation_from: EventId(0),
        })
    }

    /// A walk that is where another one was.
    pub(crate) fn from_checkpoint(reader: &'r TraceReader, checkpoint: &Checkpoint) -> Self {
        Walk {
            reader,
            rules: checkpoint.rules,
            events: Source::Near(reader.events_near(checkpoint.at..EventId(reader.event_count()))),
            tracker: checkpoint.tracker.copy(),
            guaranteed: checkpoint.guaranteed.copy(),
            newest: RefCell::default(),
            at: checkpoint.at,
            chosen: Arc::default(),
            assuming: checkpoint.assuming.clone(),
            fresh_from: checkpoint.fresh_from,
            operation_from: checkpoint.operation_from,
        }
    }

    /// For walks that are to begin here.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            rules: self.rules,
            tracker: self.tracker.copy(),
            guaranteed: self.guaranteed.copy(),
            assuming: self.assuming.clone(),
            at: self.at,
            fresh_from: self.fresh_from,
            operation_from: self.operation_from,
        }
    }

    /// About how many bytes of a checkpoint are its own.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.tracker.copy_bytes() + self.assuming.bytes_held()
    }

    /// Its views have these states.
    pub fn with_chosen(self, chosen: Arc<Chosen>) -> Self {
        Walk { chosen, ..self }
    }

    /// What this code stores is taken to be durable. Only before the first step, or right before a rewind.
    pub fn assume(&mut self, assumed: Arc<AssumedRepairs>) {
        self.assuming = Assuming::new(assumed);
    }

    /// Stores from this event on were not pending at an earlier fence of the operation under way. At its beginning these are all of the
    /// operation before.
    pub fn fresh_from(&self) -> EventId {
        self.fresh_from
    }

    /// Back to the beginning. Whoever follows the guaranteed image by a cursor need not start anew.
    pub fn rewind(&mut self) -> Result<(), WalkError> {
        self.events = Source::Whole(Box::new(self.reader.events()));
        self.tracker = self.rules.tracker();
        self.guaranteed.rewind(self.reader)?;
        self.newest.get_mut().forget();
        self.assuming.rewind();
        self.at = EventId(0);
        (self.fresh_from, self.operation_from) = Default::default();
        self.guaranteed.set_at(self.at);
        Ok(())
    }

    /// From now on states are told apart by the position they are in, too.
    pub fn set_positions(&mut self, positions: Arc<CrashPositions>) {
        self.guaranteed.set_positions(positions);
    }

    /// The first event that has not happened yet.
    pub fn at(&self) -> EventId {
        self.at
    }

    pub fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    pub fn guaranteed(&self) -> &GuaranteedImage {
        &self.guaranteed
    }

    /// Lets all events before `at` happen; those past the end of the trace do not exist.
    pub fn advance_to(&mut self, at: EventId) -> Result<(), WalkError> {
        if at < self.at {
            return Err(WalkError::Behind { at: self.at, wanted: at });
        }
        while self.at < at {
            let Some(event) = self.events.next()? else { break };
            let step = self.tracker.apply(self.at, &event);
            self.guaranteed
                .apply(&event, &step, self.reader.tables())
                .map_err(|_| WalkError::OutOfRange { event: self.at })?;
            match (&event.kind, &step.effect) {
                // What the last operation left pending is judged anew.
                (EventKind::OperationEnd { .. }, _) => self.fresh_from = self.operation_from,
                (EventKind::OperationBegin { .. }, _) => {
                    self.fresh_from = std::mem::replace(&mut self.operation_from, self.at);
                }
                (_, Effect::Fence(_) | Effect::Rmw(_)) => self.fresh_from = self.at,
                _ => {}
            }
            if matches!(step.effect, Effect::Resized { .. } | Effect::Zeroed { .. }) {
                self.newest.get_mut().forget();
            }
            for line in self.assuming.settled(&event) {
                let step = self.tracker.settle(line);
                let applied = self.guaranteed.apply(&event, &step, self.reader.tables());
                applied.map_err(|_| WalkError::OutOfRange { event: self.at })?;
            }
            self.at.0 += 1;
        }
        self.guaranteed.set_at(self.at);
        Ok(())
    }

    /// What a power failure here could leave.
    pub fn view(&self) -> PointView<'_> {
        PointView::new(self.tracker.crash_point(), &self.guaranteed, &self.newest, &self.chosen)
    }
}
