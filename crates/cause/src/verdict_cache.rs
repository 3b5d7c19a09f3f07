//! What recovery was seen to do, by the search and by the search for causes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crash::assumed::AssumedRepairs;
use crash::checkpoints::Checkpoints;
use crash::image::{CrashImage, ImageKey};
use crash::read_tree::{KnownRuns, ReadTree, ReadTreeCache, ReadTreeLimits};
use crash::recovery::Observation;
use crash::view::PointView;
use crash::walk::{Rules, Walk, WalkError};
use persistency::states::CrashState;
use rustc_hash::FxHashMap;
use trace::TraceReader;
use trace::event::EventId;
use verdict::position::CrashPositions;
use verdict::verdict::Verdict;

/// Runs that need not be made, because recovery could not tell the state from one that it has run on.
#[derive(Debug, Default)]
pub struct VerdictCache {
    shared: Arc<Shared>,
    /// The positions of the search: what holds for one says nothing about another.
    pub positions: Arc<CrashPositions>,
    /// Repairs that the search assumed.
    pub assumed: Arc<AssumedRepairs>,
    /// Of the walk that [`VerdictCache::arrive`] is told of.
    cache: ReadTreeCache,
    /// Of the places that are asked about [elsewhere](VerdictCache::elsewhere).
    there: ReadTreeCache,
    /// Of walks under the assumed repairs.
    assuming: Checkpoints,
    /// Of walks over the trace as it is, if repairs are assumed.
    plain: Checkpoints,
}

/// None: every state is to be run.
type SharedTree = Arc<RwLock<Option<ReadTree>>>;

/// What all workers know.
#[derive(Debug, Default)]
struct Shared {
    read_tree: SharedTree,
    /// Runs that nothing can be concluded from but for the same image.
    images: Mutex<FxHashMap<ImageKey, Verdict>>,
}

impl Shared {
    fn tree(&self) -> RwLockReadGuard<'_, Option<ReadTree>> {
        self.read_tree.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree_mut(&self) -> RwLockWriteGuard<'_, Option<ReadTree>> {
        self.read_tree.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn images(&self) -> MutexGuard<'_, FxHashMap<ImageKey, Verdict>> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VerdictCache {
    /// What a search with these positions found out.
    pub fn new(read_tree: Option<ReadTree>, positions: Arc<CrashPositions>) -> Self {
        VerdictCache::of(Arc::new(RwLock::new(read_tree)), positions, Arc::default())
    }

    fn of(read_tree: SharedTree, positions: Arc<CrashPositions>, assumed: Arc<AssumedRepairs>) -> Self {
        let shared = Arc::new(Shared { read_tree, images: Mutex::default() });
        VerdictCache { shared, positions, assumed, ..VerdictCache::default() }
    }

    /// Walks begin at any event: a test of short traces would else see no checkpoint.
    pub fn with_dense_checkpoints(self) -> Self {
        VerdictCache { assuming: Checkpoints::dense(), plain: Checkpoints::dense(), ..self }
    }

    /// The same knowledge, for another worker.
    pub(crate) fn share(&self) -> VerdictCache {
        VerdictCache {
            shared: Arc::clone(&self.shared),
            positions: Arc::clone(&self.positions),
            assumed: Arc::clone(&self.assumed),
            ..VerdictCache::default()
        }
    }

    /// Images of walks so far mean nothing any more: other repairs are assumed.
    pub(crate) fn forget_images(&self) {
        self.shared.images().clear();
    }

    /// How recovery did on just this image, where nothing else can be said of it.
    pub(crate) fn recall_image(&self, image: &CrashImage<'_>) -> Option<Verdict> {
        self.shared.images().get(&image.key()).cloned()
    }

    pub(crate) fn learn_image(&self, image: &CrashImage<'_>, observation: &Observation) {
        if observation.reads.is_none() || self.shared.tree().is_none() {
            self.shared.images().insert(image.key(), observation.verdict.clone());
        }
    }

    /// A walk at whose points the memory can be asked.
    pub fn walk<'r>(&self, reader: &'r TraceReader, rules: Rules) -> Result<Walk<'r>, WalkError> {
        let mut walk = Walk::new(reader, rules)?;
        walk.set_positions(Arc::clone(&self.positions));
        walk.assume(Arc::clone(&self.assumed));
        Ok(walk)
    }

    /// As [`walk`](Self::walk), at this place: it begins near it. For who goes there and back.
    pub fn walk_to<'r>(&mut self, reader: &'r TraceReader, rules: Rules, at: EventId) -> Result<Walk<'r>, WalkError> {
        let mut walk = self.assuming.walk_to(reader, rules, &self.assumed, at)?;
        walk.set_positions(Arc::clone(&self.positions));
        Ok(walk)
    }

    /// As [`walk_to`](Self::walk_to), with the program as it is: no repair is assumed.
    pub(crate) fn plain_walk_to<'r>(
        &mut self,
        reader: &'r TraceReader,
        rules: Rules,
        at: EventId,
    ) -> Result<Walk<'r>, WalkError> {
        let checkpoints = if self.assumed.is_empty() { &mut self.assuming } else { &mut self.plain };
        checkpoints.walk_to(reader, rules, &Arc::default(), at)
    }

    fn forget_places(&mut self) {
        (self.cache, self.there) = Default::default();
    }

    /// What is known, for the next search; none if nothing may be concluded.
    pub fn take_tree(&mut self) -> Option<ReadTree> {
        self.forget_places();
        self.shared.tree_mut().take()
    }

    /// Continues with what a search found out.
    pub fn put_tree(&mut self, read_tree: Option<ReadTree>) {
        self.forget_places();
        *self.shared.tree_mut() = read_tree;
    }

    /// Takes in runs of other machines.
    pub fn learn_runs(&mut self, runs: &KnownRuns) {
        self.forget_places();
        learn(&mut self.shared.tree_mut(), runs);
    }

    /// Has a run read a line of a pool, as far as that is known?
    pub fn has_reads(&self) -> bool {
        self.shared.tree().as_ref().is_some_and(ReadTree::has_lines)
    }

    /// The walk has come to this point. Call before any question there.
    pub fn arrive(&mut self, view: &PointView<'_>) {
        if let Some(read_tree) = &*self.shared.tree() {
            self.cache.arrive(read_tree, view);
        }
    }

    pub fn recall(&mut self, view: &PointView<'_>, state: &CrashState) -> Option<Verdict> {
        self.shared.tree().as_ref()?.lookup(&mut self.cache, view, state).map(|decided| decided.verdict)
    }

    /// The memory as it is asked at a point of another walk, for one question. What it knows of the last such point is of use there: most lines
    /// hold the same.
    pub fn elsewhere<T>(&mut self, view: &PointView<'_>, ask: impl FnOnce(&mut VerdictCache) -> T) -> T {
        std::mem::swap(&mut self.cache, &mut self.there);
        self.arrive(view);
        let answer = ask(self);
        std::mem::swap(&mut self.cache, &mut self.there);
        answer
    }

    pub fn learn(&mut self, view: &PointView<'_>, state: &CrashState, observation: &Observation) {
        let mut tree = self.shared.tree_mut();
        let (Some(read_tree), Some(reads)) = (&mut *tree, &observation.reads) else { return };
        if read_tree.insert(&mut self.cache, view, state, reads, &observation.verdict).is_err() {
            // Recovery is not deterministic: nothing that was seen says anything.
            *tree = None;
        }
    }
}

/// What a machine knows that looks into failing states for another one.
#[derive(Debug)]
pub struct ForeignVerdicts(SharedTree);

impl Default for ForeignVerdicts {
    fn default() -> Self {
        let tree = ReadTree::sharing(ReadTreeLimits::default());
        ForeignVerdicts(Arc::new(RwLock::new(Some(tree))))
    }
}

impl ForeignVerdicts {
    fn tree(&self) -> RwLockWriteGuard<'_, Option<ReadTree>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// For an analysis at these positions, under these repairs.
    pub fn cache(&self, positions: Arc<CrashPositions>, assumed: Arc<AssumedRepairs>) -> VerdictCache {
        VerdictCache::of(Arc::clone(&self.0), positions, assumed)
    }

    /// Takes in what others have run.
    pub fn learn(&self, runs: &KnownRuns) {
        learn(&mut self.tree(), runs);
    }

    /// Runs that were not handed on yet.
    pub fn new_runs(&self) -> Option<KnownRuns> {
        self.tree().as_mut()?.new_runs()
    }
}

/// Takes in runs. If they contradict what is known, recovery is not deterministic, and nothing that was seen says anything.
fn learn(tree: &mut Option<ReadTree>, runs: &KnownRuns) {
    if tree.as_mut().is_some_and(|tree| tree.learn(runs).is_err()) {
        *tree = None;
    }
}
