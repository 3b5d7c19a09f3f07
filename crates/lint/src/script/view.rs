//! What a script sees of an event: a map.

use persistency::effect::{Effect, FenceEffect, FlushVerdict};
use persistency::line::LineId;
use rhai::{Array, Dynamic, Map};
use trace::event::{Event, EventKind, FenceKind, FlushKind, FlushTarget, Place, StoreKind};

use super::engine::number;
use crate::rule::{Loss, LostStore, Moment};

/// The functions that a script can have, beside `rule` and its own helpers that begin with `_`.
pub(super) const HANDLERS: [&str; 6] = ["store", "flush", "fence", "called", "returned", "lost"];

/// The handler that is called for an event.
pub(super) fn handler(event: &Event<'_>) -> Option<&'static str> {
    match event.kind {
        EventKind::Store { .. } | EventKind::Rmw { .. } => Some("store"),
        EventKind::Flush { .. } => Some("flush"),
        EventKind::Fence { .. } => Some("fence"),
        EventKind::Call { .. } => Some("called"),
        EventKind::Return { .. } => Some("returned"),
        _ => None,
    }
}

fn put(map: &mut Map, key: &str, value: impl Into<Dynamic>) {
    map.insert(key.into(), value.into());
}

fn put_place(map: &mut Map, place: Place) {
    map.insert("pool".into(), number(place.pool.0.into()));
    map.insert("offset".into(), number(place.offset.0));
}

/// The event, what it did, and the line that it touched.
pub(super) fn event(moment: &Moment<'_>) -> Map {
    let mut map = Map::new();
    map.insert("event".into(), number(moment.id.0));
    map.insert("thread_id".into(), number(moment.event.thread.0.into()));
    put(&mut map, "library", moment.world.in_pm_library(moment.site));
    match moment.event.kind {
        EventKind::Store { place, kind, bytes } => store(&mut map, moment, place, kind != StoreKind::Plain, bytes),
        EventKind::Rmw { place, new, .. } => {
            store(&mut map, moment, place, false, new);
            put(&mut map, "atomic", true);
        }
        EventKind::Flush { kind, target } => flush(&mut map, moment, kind, target),
        EventKind::Fence { kind } => {
            let name = match kind {
                FenceKind::Sfence => "sfence",
                FenceKind::Mfence => "mfence",
                FenceKind::Locked => "locked",
            };
            put(&mut map, "kind", name);
            if let Effect::Fence(effect) = moment.step.effect {
                fence(&mut map, &effect);
            }
        }
        EventKind::Call { watch, args } => {
            put(&mut map, "function", moment.world.tables.watch(watch).to_owned());
            let values: Array = args.iter().map(|&arg| number(arg)).collect();
            // An argument that points into a pool, as the place that it points to.
            let places = args.iter().map(|&arg| match moment.world.place_at(arg) {
                Some(place) => {
                    let mut at = Map::new();
                    put_place(&mut at, place);
                    at.into()
                }
                None => Dynamic::UNIT,
            });
            put(&mut map, "places", places.collect::<Array>());
            put(&mut map, "args", values);
        }
        EventKind::Return { watch, value } => {
            put(&mut map, "function", moment.world.tables.watch(watch).to_owned());
            map.insert("value".into(), number(value));
        }
        _ => {}
    }
    map
}

fn store(map: &mut Map, moment: &Moment<'_>, place: Place, non_temporal: bool, bytes: &[u8]) {
    put_place(map, place);
    map.insert("len".into(), number(bytes.len() as u64));
    put(map, "nt", non_temporal);
    put(map, "atomic", false);
    // The value, of a store that is a number.
    let mut word = [0; 8];
    if bytes.len() <= word.len() {
        word[..bytes.len()].copy_from_slice(bytes);
        map.insert("value".into(), number(u64::from_le_bytes(word)));
    }
    let overwritten = moment.step.stored().iter().map(|line| u64::from(line.overwritten.count())).sum();
    map.insert("overwritten".into(), number(overwritten));
    put_pending(map, moment, place);
}

fn put_pending(map: &mut Map, moment: &Moment<'_>, place: Place) {
    let pending = moment.step.after().line(LineId::of(place)).map_or(0, |line| line.pending());
    map.insert("pending".into(), number(pending));
}

fn flush(map: &mut Map, moment: &Moment<'_>, kind: FlushKind, target: FlushTarget) {
    let name = match kind {
        FlushKind::Clflush => "clflush",
        FlushKind::Clflushopt => "clflushopt",
        FlushKind::Clwb => "clwb",
        FlushKind::Cldemote => "cldemote",
    };
    put(map, "kind", name);
    if let FlushTarget::Pool(place) = target {
        put_place(map, place);
        put_pending(map, moment, place);
    }
    if let Effect::Flush(effect) = moment.step.effect {
        let verdict = match effect.verdict {
            FlushVerdict::Useful => "useful",
            FlushVerdict::Clean => "clean",
            FlushVerdict::AlreadyFlushed => "already-flushed",
            FlushVerdict::OnlyNonTemporal => "only-nt",
            FlushVerdict::Volatile => "volatile",
            FlushVerdict::Hint => "hint",
            FlushVerdict::NotNeeded => "not-needed",
        };
        put(map, "verdict", verdict);
        map.insert("stores".into(), number(effect.stores));
    }
}

fn fence(map: &mut Map, effect: &FenceEffect) {
    put(map, "counts", effect.counts);
    map.insert("flushes".into(), number(effect.flushes));
    map.insert("nt_stores".into(), number(effect.streamed));
    map.insert("lines".into(), number(effect.lines_settled));
    map.insert("stores".into(), number(effect.stores));
}

/// A store that was not durable at the end.
pub(super) fn lost(lost: &LostStore) -> Map {
    let mut map = Map::new();
    map.insert("event".into(), number(lost.event.0));
    map.insert("thread_id".into(), number(lost.thread.0.into()));
    put_place(&mut map, lost.line.start());
    let fate = match lost.fate {
        Loss::NeverFlushed { elsewhere: None } => "line-never-flushed",
        Loss::NeverFlushed { elsewhere: Some(_) } => "never-flushed",
        Loss::NeverFenced { .. } => "never-fenced",
        Loss::NeverDrained => "nt-never-fenced",
    };
    put(&mut map, "fate", fate);
    map
}
