//! Names for addresses, wherever the debug information is. Needs a C compiler and `objcopy`.

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};
use trace::symbol::{SourceFrame, SymbolProblem, Symbolizer};
use trace::*;

const SOURCE: &str = "\
static inline __attribute__((always_inline)) void inner(volatile long *p) {
    p[0] = 1;
}
__attribute__((noinline)) void outer(volatile long *p) {
    p[1] = 2;
    inner(p);
    p[2] = 3;
}
int main(void) {
    long a[3];
    outer(a);
    return 0;
}
";

struct Binary {
    folder: tempfile::TempDir,
    path: PathBuf,
    module: CodeModule,
    /// Addresses of the code of `outer`.
    outer: std::ops::Range<u64>,
}

fn run(program: &str, args: &[&Path]) {
    let status = Command::new(program).args(args).status().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(status.success(), "{program} {args:?}");
}

fn build() -> Binary {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (folder.path().join("prog.c"), folder.path().join("prog"));
    std::fs::write(&source, SOURCE).unwrap();
    let flags = ["-g", "-O1", "-Wl,--build-id", "-o"].map(Path::new);
    run("cc", &[&flags[..], &[&path, &source]].concat());
    let bytes = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok("outer")).unwrap();
    let build_id = file.build_id().unwrap().map(<[u8]>::to_vec);
    assert!(build_id.is_some());
    let module = CodeModule { path: path.to_str().unwrap().into(), build_id, kind: ModuleKind::Elf };
    Binary { folder, module, outer: symbol.address()..symbol.address() + symbol.size(), path }
}

impl Binary {
    fn tables(&self) -> Tables {
        Tables { modules: vec![self.module.clone()], ..Tables::default() }
    }

    /// Takes the debug information out of the binary, into a file of its own.
    fn strip(&self) -> PathBuf {
        let debug = self.folder.path().join("prog.dbg");
        run("objcopy", &[Path::new("--only-keep-debug"), &self.path, &debug]);
        run("objcopy", &[Path::new("--strip-all"), &self.path]);
        debug
    }

    fn all_frames(&self, symbols: &mut Symbolizer<'_>) -> Vec<Vec<SourceFrame>> {
        let at = |addr| symbols.frames(CodeAddr { module: ModuleId(0), addr }).to_vec();
        self.outer.clone().map(at).collect()
    }

    fn expect_lines(&self, symbols: &mut Symbolizer<'_>) {
        let frames = self.all_frames(symbols);
        let line = |frame: &SourceFrame| {
            let source = frame.source.as_ref().expect("a source line");
            assert!(source.file.ends_with("prog.c"));
            (frame.function.clone().unwrap(), source.line, frame.inlined)
        };
        let all: Vec<Vec<_>> = frames.iter().map(|frames| frames.iter().map(line).collect()).collect();
        let inlined = vec![("inner".to_owned(), 2, true), ("outer".to_owned(), 6, false)];
        assert!(all.contains(&inlined), "{all:?}");
        assert!(all.contains(&vec![("outer".to_owned(), 7, false)]), "{all:?}");
    }
}

#[test]
fn debug_information_in_the_binary() {
    let binary = build();
    let tables = binary.tables();
    binary.expect_lines(&mut Symbolizer::with_debug_folders(&tables, Vec::new()));
}

#[test]
fn debug_file_by_link() {
    let binary = build();
    let debug = binary.strip();
    let link = PathBuf::from(format!("--add-gnu-debuglink={}", debug.display()));
    run("objcopy", &[&link, &binary.path]);
    let tables = binary.tables();
    binary.expect_lines(&mut Symbolizer::with_debug_folders(&tables, Vec::new()));

    // One that does not belong to the binary is not used.
    let mut bytes = std::fs::read(&debug).unwrap();
    bytes.push(0);
    std::fs::write(&debug, bytes).unwrap();
    let mut symbols = Symbolizer::with_debug_folders(&tables, Vec::new());
    assert!(binary.all_frames(&mut symbols).iter().flatten().all(|frame| frame.source.is_none()));
}

#[test]
fn debug_file_by_build_id() {
    let binary = build();
    let debug = binary.strip();
    let id: String = binary.module.build_id.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    let root = binary.folder.path().join("debug");
    let folder = root.join(".build-id").join(&id[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::rename(debug, folder.join(format!("{}.debug", &id[2..]))).unwrap();
    let tables = binary.tables();
    binary.expect_lines(&mut Symbolizer::with_debug_folders(&tables, vec![root.clone()]));

    std::fs::remove_file(&binary.path).unwrap();
    binary.expect_lines(&mut Symbolizer::with_debug_folders(&tables, vec![root]));
}

#[test]
fn symbol_table_only() {
    let binary = build();
    run("objcopy", &[Path::new("--strip-debug"), &binary.path]);
    let tables = binary.tables();
    let frames = binary.all_frames(&mut Symbolizer::with_debug_folders(&tables, Vec::new()));
    let wanted = SourceFrame { function: Some("outer".into()), ..SourceFrame::default() };
    assert!(frames.iter().all(|frames| *frames == [wanted.clone()]), "{frames:?}");
}

#[test]
fn files_that_are_not_what_they_were() {
    let binary = build();
    let addr = CodeAddr { module: ModuleId(0), addr: binary.outer.start };
    let problem = |module: CodeModule| {
        let tables = Tables { modules: vec![module], ..Tables::default() };
        let mut symbols = Symbolizer::with_debug_folders(&tables, Vec::new());
        assert!(symbols.frames(addr).is_empty());
        symbols.problem(ModuleId(0)).cloned()
    };
    let path = binary.module.path.clone();
    let other = CodeModule { build_id: Some(vec![1; 20]), ..binary.module.clone() };
    assert_eq!(problem(other), Some(SymbolProblem::Changed(path.clone())));
    let anonymous = CodeModule { kind: ModuleKind::Anonymous, ..binary.module.clone() };
    assert_eq!(problem(anonymous), Some(SymbolProblem::NoFile));
    std::fs::write(&path, "text").unwrap();
    assert_eq!(problem(binary.module.clone()), Some(SymbolProblem::NotElf(path.clone())));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(problem(binary.module.clone()), Some(SymbolProblem::Gone(path)));
}
