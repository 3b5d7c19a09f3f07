//! Names for places in the code: frames, source lines, what is stored to. Each is written once.

use std::collections::HashMap;
use std::env;
use std::path::PathBuf;

use finding::blame::{self, Libraries};
use finding::evidence::{CodePlace, PlaceNo};
use finding::finding::{Location, Role};
use finding::site::Site;
use finding::source::Sources;
use rustc_hash::FxHashMap;
use trace::Tables;
use trace::event::CodeAddr;
use trace::symbol::Symbolizer;

use cause::lvalue;

/// Frames of one call path that are kept.
const FRAMES: usize = 24;

/// Collects places.
#[derive(Debug)]
pub struct Places<'t> {
    tables: &'t Tables,
    libraries: &'t Libraries,
    symbols: Symbolizer<'t>,
    pub sources: Sources,
    numbers: FxHashMap<Site, PlaceNo>,
    frame_numbers: HashMap<Location, u32>,
    pub places: Vec<CodePlace>,
    pub frames: Vec<Location>,
}

impl<'t> Places<'t> {
    pub fn new(tables: &'t Tables, libraries: &'t Libraries) -> Places<'t> {
        let folders = vec![PathBuf::from(&tables.meta.cwd), env::current_dir().unwrap_or_default()];
        Places {
            tables,
            libraries,
            symbols: Symbolizer::new(tables),
            sources: Sources::new(folders),
            numbers: FxHashMap::default(),
            frame_numbers: HashMap::new(),
            places: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// None for events that no instruction made.
    pub fn number(&mut self, site: Site) -> Option<PlaceNo> {
        if site.pc == CodeAddr::default() {
            return None;
        }
        if let Some(&known) = self.numbers.get(&site) {
            return Some(known);
        }
        let frames = blame::frames(site, Role::Event, self.tables, &mut self.symbols);
        let own = blame::guilty(&frames, self.libraries).min(FRAMES - 1);
        let guilty = &frames[own];
        let text = guilty.file.as_ref().zip(guilty.line).and_then(|(file, line)| self.sources.line(file, line));
        let name = text.as_deref().and_then(lvalue::of_text);
        let frames = frames.into_iter().take(FRAMES).map(|frame| self.frame(frame)).collect();
        let number = PlaceNo(self.places.len() as u32);
        let text = text.map(|text| text.trim().chars().take(160).collect());
        self.places.push(CodePlace { frames, own: own as u32, text, name });
        self.numbers.insert(site, number);
        Some(number)
    }

    /// What is stored to there.
    pub fn name(&self, place: Option<PlaceNo>) -> Option<&str> {
        self.places[place?.0 as usize].name.as_deref()
    }

    fn frame(&mut self, frame: Location) -> u32 {
        let frames = &mut self.frames;
        *self.frame_numbers.entry(frame).or_insert_with_key(|frame| {
            frames.push(frame.clone());
            frames.len() as u32 - 1
        })
    }
}
