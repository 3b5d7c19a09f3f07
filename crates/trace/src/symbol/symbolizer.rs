//! Names for code addresses, loaded module by module when first asked for, and remembered.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

use addr2line::{Loader, demangle_auto};
use rustc_hash::FxHashMap;

use crate::event::{CodeAddr, ModuleId};
use crate::tables::{CodeModule, Tables};

use super::called::Called;
use super::debug_file::{self, Segment, SymbolProblem};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
    /// 0 if unknown.
    pub column: u32,
}

/// One function at a code address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFrame {
    /// Demangled.
    pub function: Option<String>,
    pub source: Option<SourceLine>,
    /// Its code was put into that of the frame that follows.
    pub inlined: bool,
}

/// Names of functions and places in source files for the code addresses of one trace.
pub struct Symbolizer<'t> {
    tables: &'t Tables,
    roots: Vec<PathBuf>,
    modules: FxHashMap<ModuleId, Module>,
    cache: FxHashMap<CodeAddr, Rc<[SourceFrame]>>,
    called: Called,
    /// Modules that are no part of the trace, by path.
    others: FxHashMap<String, Other>,
}

struct Other {
    module: Module,
    segments: Vec<Segment>,
}

enum Module {
    Known { dwarf: Option<Box<Loader>>, symbols: Option<Box<Loader>> },
    Unknown(SymbolProblem),
}

impl fmt::Debug for Symbolizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbolizer").field("roots", &self.roots).field("cached", &self.cache.len()).finish()
    }
}

impl<'t> Symbolizer<'t> {
    pub fn new(tables: &'t Tables) -> Symbolizer<'t> {
        Symbolizer::with_debug_folders(tables, vec![PathBuf::from("/usr/lib/debug")])
    }

    /// Looks for separate debug files in these folders instead of `/usr/lib/debug`.
    pub fn with_debug_folders(tables: &'t Tables, roots: Vec<PathBuf>) -> Symbolizer<'t> {
        Symbolizer {
            tables,
            roots,
            modules: FxHashMap::default(),
            cache: FxHashMap::default(),
            called: Called::default(),
            others: FxHashMap::default(),
        }
    }

    /// The functions at an instruction, innermost first. Empty if nothing is known.
    pub fn frames(&mut self, addr: CodeAddr) -> Rc<[SourceFrame]> {
        if let Some(frames) = self.cache.get(&addr) {
            return Rc::clone(frames);
        }
        let frames: Rc<[SourceFrame]> = match self.module(addr.module) {
            Module::Known { dwarf, symbols } => look_up(addr.addr, dwarf.as_deref(), symbols.as_deref()).into(),
            Module::Unknown(_) => Rc::new([]),
        };
        self.cache.insert(addr, Rc::clone(&frames));
        frames
    }

    /// The functions along a call path, innermost first: at the instruction `pc`, then at the calls that return to `returns`. With what was
    /// called known, an inner function without a name has that of the one that was called.
    pub fn path_frames(
        &mut self,
        pc: CodeAddr,
        returns: impl IntoIterator<Item = CodeAddr>,
    ) -> Vec<(CodeAddr, Rc<[SourceFrame]>)> {
        let mut path = vec![(pc, self.frames(pc))];
        for return_to in returns {
            if let Some((at, frames)) = path.last_mut() {
                self.name_by_call(*at, frames, return_to);
            }
            path.push((return_to, self.call_frames(return_to)));
        }
        path
    }

    fn name_by_call(&mut self, at: CodeAddr, frames: &mut Rc<[SourceFrame]>, return_to: CodeAddr) {
        if frames.last().is_some_and(|outermost| outermost.function.is_some()) {
            return;
        }
        let Some(name) = self.called.name(at.module, return_to, self.tables) else { return };
        let function = Some(demangle_auto(Cow::Owned(name), None).into_owned());
        let mut named = frames.to_vec();
        match named.last_mut() {
            Some(outermost) => outermost.function = function,
            None => named.push(SourceFrame { function, ..SourceFrame::default() }),
        }
        *frames = named.into();
    }

    /// The functions at the call that returns to `return_to`: the call instruction is the one before.
    pub fn call_frames(&mut self, return_to: CodeAddr) -> Rc<[SourceFrame]> {
        self.frames(CodeAddr { addr: return_to.addr.saturating_sub(1), ..return_to })
    }

    /// The functions at a place in an ELF file, which need not be a module of the trace; `returns`: the place is a return
    /// address.
    pub fn frames_in_file(&mut self, path: &str, offset: u64, returns: bool) -> Vec<SourceFrame> {
        let roots = &self.roots;
        let other = self.others.entry(path.to_owned()).or_insert_with(|| {
            let module = CodeModule { path: path.to_owned(), ..CodeModule::default() };
            Other { module: load(&module, roots), segments: debug_file::segments(path) }
        });
        let Module::Known { dwarf, symbols } = &other.module else { return Vec::new() };
        let inside = |segment: &&Segment| (segment.offset..segment.offset + segment.len).contains(&offset);
        let Some(segment) = other.segments.iter().find(inside) else { return Vec::new() };
        let addr = segment.addr + (offset - segment.offset) - u64::from(returns);
        look_up(addr, dwarf.as_deref(), symbols.as_deref())
    }

    /// Why a module has no names, if it has none.
    pub fn problem(&mut self, module: ModuleId) -> Option<&SymbolProblem> {
        match self.module(module) {
            Module::Known { .. } => None,
            Module::Unknown(problem) => Some(problem),
        }
    }

    fn module(&mut self, id: ModuleId) -> &Module {
        self.modules.entry(id).or_insert_with(|| load(self.tables.module(id), &self.roots))
    }
}

fn load(module: &CodeModule, roots: &[PathBuf]) -> Module {
    let files = match debug_file::find(module, roots) {
        Ok(files) => files,
        Err(problem) => return Module::Unknown(problem),
    };
    let open = |path: &PathBuf, supplement: Option<&PathBuf>| Loader::new_with_sup(path, supplement).ok().map(Box::new);
    let dwarf = files.debug.as_ref().and_then(|path| open(path, files.supplement.as_ref()));
    let symbols = files.binary.as_ref().filter(|path| files.debug.as_ref() != Some(*path));
    Module::Known { dwarf, symbols: symbols.and_then(|path| open(path, None)) }
}

fn look_up(addr: u64, dwarf: Option<&Loader>, symbols: Option<&Loader>) -> Vec<SourceFrame> {
    let mut frames = dwarf.and_then(|dwarf| dwarf_frames(addr, dwarf)).unwrap_or_default();
    let symbol = || {
        let name = [dwarf, symbols].into_iter().flatten().find_map(|loader| loader.find_symbol(addr))?;
        Some(demangle_auto(Cow::Borrowed(name), None).into_owned())
    };
    match frames.last_mut() {
        Some(outermost) if outermost.function.is_none() => outermost.function = symbol(),
        Some(_) => {}
        None => frames.extend(symbol().map(|name| SourceFrame { function: Some(name), ..SourceFrame::default() })),
    }
    frames
}

fn dwarf_frames(addr: u64, dwarf: &Loader) -> Option<Vec<SourceFrame>> {
    let mut frames = Vec::new();
    let mut found = dwarf.find_frames(addr).ok()?;
    // Broken debug information ends the list; what came before is right.
    while let Ok(Some(frame)) = found.next() {
        let function = frame.function.and_then(|function| Some(function.demangle().ok()?.into_owned()));
        let source = frame.location.and_then(|location| {
            let (file, line) = (location.file?.to_owned(), location.line?);
            Some(SourceLine { file, line, column: location.column.unwrap_or(0) })
        });
        frames.push(SourceFrame { function, source, inlined: true });
    }
    if let Some(innermost) = frames.first_mut().filter(|frame| frame.source.is_none()) {
        innermost.source = line_before(addr, innermost.function.as_deref(), dwarf);
    }
    if let Some(outermost) = frames.last_mut() {
        outermost.inlined = false;
    }
    Some(frames)
}

/// Instructions that the compiler made on its own have line 0 (DWARF 5, 6.2.2). A program that hangs may be found at one of
/// them: the line before it in the same function is where it is for people.
fn line_before(addr: u64, function: Option<&str>, dwarf: &Loader) -> Option<SourceLine> {
    const FAR: u64 = 64;
    function?;
    (1..=FAR.min(addr)).find_map(|back| {
        let mut found = dwarf.find_frames(addr - back).ok()?;
        let frame = found.next().ok()??;
        let name = frame.function.and_then(|name| Some(name.demangle().ok()?.into_owned()));
        let location = frame.location.filter(|_| name.as_deref() == function)?;
        Some(SourceLine { file: location.file?.to_owned(), line: location.line?, column: location.column.unwrap_or(0) })
    })
}
