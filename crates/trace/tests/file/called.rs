//! Names for inner functions of stripped libraries, by the calls that led there. Needs a C compiler and `objcopy`.

use std::path::{Path, PathBuf};
use std::process::Command;

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use object::{Object, ObjectSection, ObjectSymbol};
use trace::symbol::Symbolizer;
use trace::*;

/// `inner`, `middle` and `fast` have no names once the library is stripped. The exported functions jump to `inner`, and `middle` to one of them.
const LIBRARY: &str = "\
static __attribute__((noinline, noclone)) void inner(volatile long *p, long value) { p[0] = value; p[1] = value; }
void outer(volatile long *p) { inner(p, 1); }
void other(volatile long *p) { inner(p, 2); }
static __attribute__((noinline, noclone)) void middle(volatile long *p) { p[1] = 3; outer(p); }
long deep(volatile long *p) { middle(p); return p[0]; }
static void fast(volatile long *p) { p[0] = 4; }
static void (*choose(void))(volatile long *p) { return fast; }
__attribute__((ifunc(\"choose\"))) void chosen(volatile long *p);
";

/// Another library, whose functions jump into the first.
const WRAPPER: &str = "\
void outer(volatile long *p);
void other(volatile long *p);
void wrap(volatile long *p) { outer(p); }
void either(volatile long *p) { if (p[0]) outer(p); else other(p); }
";

/// Calls, in this order: the library, the wrapper, the wrapper that may jump to either, a function that is known only when it runs, and one that
/// the library chooses when it is loaded.
const PROGRAM: &str = "\
void outer(volatile long *p);
void wrap(volatile long *p);
void either(volatile long *p);
void chosen(volatile long *p);
void (*volatile pointer)(volatile long *p) = outer;
int main(void) { volatile long a[2] = {0}; outer(a); wrap(a); either(a); pointer(a); chosen(a); return 0; }
";

/// Address and length of a function.
fn function(path: &Path, name: &str) -> (u64, u64) {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
    (symbol.address(), symbol.size())
}

/// Where the calls of a function return to.
fn returns(path: &Path, name: &str) -> Vec<u64> {
    let (address, size) = function(path, name);
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let text = file.section_by_name(".text").into_iter().chain(file.section_by_name(".text.startup"));
    let code = text.filter_map(|section| section.data_range(address, size).ok().flatten()).next().unwrap();
    let calls = [FlowControl::Call, FlowControl::IndirectCall];
    let decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    decoder.into_iter().filter(|one| calls.contains(&one.flow_control())).map(|one| one.next_ip()).collect()
}

struct Built {
    _folder: tempfile::TempDir,
    paths: [PathBuf; 3],
    inner: u64,
    middle: u64,
    fast: u64,
    /// Where `middle` returns to, in the library.
    deep: Vec<u64>,
}

fn build(flags: &[&str]) -> Built {
    let folder = tempfile::tempdir().unwrap();
    let cc = |name: &str, source: &str, flags: &[&str]| -> PathBuf {
        let (source_file, path) = (folder.path().join(format!("{name}.c")), folder.path().join(name));
        std::fs::write(&source_file, source).unwrap();
        let mut command = Command::new("cc");
        command
            .args(["-O2", "-o"])
            .arg(&path)
            .arg(source_file)
            .arg(format!("-L{}", folder.path().display()))
            .args(flags);
        assert!(command.status().unwrap().success(), "{command:?}");
        path
    };
    let shared = [flags, &["-shared", "-fPIC"]].concat();
    let library = cc("libinner.so", LIBRARY, &shared);
    let wrapper = cc("libwrap.so", WRAPPER, &[&shared[..], &["-linner"]].concat());
    let program = cc("prog", PROGRAM, &[flags, &["-lwrap", "-linner"]].concat());
    let [inner, middle, fast] = ["inner", "middle", "fast"].map(|name| function(&library, name).0);
    let deep = returns(&library, "deep");
    for path in [&library, &wrapper] {
        assert!(Command::new("objcopy").arg("--strip-all").arg(path).status().unwrap().success());
    }
    Built { _folder: folder, paths: [program, library, wrapper], inner, middle, fast, deep }
}

fn check(flags: &[&str]) {
    let built = build(flags);
    let module =
        |path: &PathBuf| CodeModule { path: path.to_str().unwrap().into(), build_id: None, kind: ModuleKind::Elf };
    let tables = Tables { modules: built.paths.iter().map(module).collect(), ..Tables::default() };
    let mut symbols = Symbolizer::with_debug_folders(&tables, Vec::new());
    let in_library = |addr| CodeAddr { module: ModuleId(1), addr };
    let runs = [built.inner, built.inner, built.inner, built.inner, built.fast].map(in_library);
    let calls = returns(&built.paths[0], "main");
    assert_eq!(runs.len(), calls.len());
    let mut names = Vec::new();
    for (pc, addr) in runs.into_iter().zip(calls) {
        assert!(symbols.frames(pc).is_empty(), "it has a name");
        let path = symbols.path_frames(pc, [CodeAddr { module: ModuleId(0), addr }]);
        assert_eq!(path.len(), 2);
        assert_eq!(path[1].1.last().unwrap().function.as_deref(), Some("main"));
        names.push(path[0].1.last().and_then(|frame| frame.function.clone()));
    }
    let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
    assert_eq!(names, [Some("outer"), Some("outer"), None, None, Some("chosen")], "{flags:?}");

    let path = symbols.path_frames(in_library(built.middle), built.deep.iter().copied().map(in_library));
    let names: Vec<_> = path.iter().map(|(_, frames)| frames.last().and_then(|frame| frame.function.clone())).collect();
    assert_eq!(names, [None, Some("deep".to_owned())], "what was called inside is not what it may jump to: {flags:?}");
}

#[test]
fn an_inner_function_is_named_by_the_call() {
    check(&[]);
}

#[test]
fn without_a_procedure_linkage_table() {
    check(&["-fno-plt"]);
}

#[test]
fn with_a_second_procedure_linkage_table() {
    check(&["-fcf-protection=full", "-Wl,-z,ibtplt"]);
}
