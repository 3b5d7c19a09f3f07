//! A state of one crash point as one content per dirty line, which is handy to change line by line.

use persistency::point::Content;
use persistency::states::{Base, CrashState};

use crate::view::{PointView, everything_of};

/// What each dirty line of a point has in PM, by its place in [`PointView::lines`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment(pub Vec<Content>);

impl Assignment {
    pub fn of(view: &PointView<'_>, state: &CrashState) -> Assignment {
        Assignment(view.lines().iter().map(|line| state.content(line)).collect())
    }

    pub fn everything(view: &PointView<'_>) -> Assignment {
        Assignment(view.lines().iter().map(everything_of).collect())
    }

    pub fn guaranteed(view: &PointView<'_>) -> Assignment {
        Assignment(vec![Content::default(); view.lines().len()])
    }

    pub fn state(&self, view: &PointView<'_>) -> CrashState {
        let named = view.lines().iter().zip(&self.0).filter(|(_, content)| **content != Content::default());
        CrashState { base: Base::Guaranteed, lines: named.map(|(line, &content)| (line.id(), content)).collect() }
    }
}
