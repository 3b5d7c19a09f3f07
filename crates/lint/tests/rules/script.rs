//! Rules in scripts: the same interface, and limits that hold.

use std::path::Path;

use lint::script::Script;

use crate::program::{BASE, LIBRARY, Program};

fn compile(text: &str) -> Result<Script, String> {
    Script::compile(text, Path::new("my.rhai")).map_err(|error| error.to_string())
}

const HEAD: &str = r#"fn rule() { #{ id: "MY1", title: "mine" } } "#;

fn with(text: &str) -> Program {
    let mut program = Program::new();
    program.scripts.push(Box::new(compile(&format!("{HEAD}{text}")).expect("a good script")));
    program
}

#[test]
fn a_script_sees_events_and_remembers() {
    let mut program = with(
        r#"
        fn store(e) { this.last = e.offset; }
        fn fence(e) { if e.kind == "sfence" && this.last == 64 && e.stores == 1 { report("after line 1") } }
        "#,
    );
    program.store(1, 0).persist(2, 0).store(4, 64).persist(5, 64).finds(&[("MY1", 6)]);
}

#[test]
fn a_script_sees_what_was_lost() {
    let mut program = with(r#"fn lost(e) { if e.fate == "never-fenced" { report() } }"#);
    program.store(1, 0).clwb(2, 0).finds(&[("FP0102", 2), ("MY1", 1)]);
    // Of all that is lost.
    assert!(with("fn lost(e) { }").store(LIBRARY, 0).reports_losses());
    assert!(!with("fn store(e) { }").store(LIBRARY, 0).reports_losses());
}

#[test]
fn endless_scripts_end_with_an_error() {
    let fails = |text: &str| with(text).store(1, 0).try_found().unwrap_err().to_string();
    let endless = fails("fn store(e) { loop { } }");
    assert!(endless.contains("rule MY1, at event 1") && endless.contains("loop that does not end"), "{endless}");
    let deep = fails("fn _f(n) { _f(n + 1) } fn store(e) { _f(0) }");
    assert!(deep.contains("recursion that does not end"), "{deep}");
    let large = fails("fn store(e) { let a = [1]; loop { a += a; } }");
    assert!(large.contains("grown beyond"), "{large}");
    let waiting = fails("fn store(e) { sleep(1000) }");
    assert!(waiting.contains("cannot wait"), "{waiting}");
    let wrong = fails("fn store(e) { e.offset + nothing }");
    assert!(wrong.contains("nothing"), "{wrong}");
}

#[test]
fn broken_scripts_are_refused_when_they_are_read() {
    let refused = |text: &str| compile(text).unwrap_err();
    assert!(refused("fn store(e) {").contains("my.rhai"));
    assert!(refused("fn store(e) { }").contains("does not say what it is"));
    assert!(refused("fn rule() { loop {} }").contains("loop that does not end"));
    assert!(refused("fn rule() { #{ id: \"FP0101\", title: \"t\" } }").contains("built-in"));
    assert!(refused("fn rule() { #{ id: \"A\", title: \"t\", severity: \"bad\" } }").contains("`bad`"));
    assert!(refused("fn rule() { #{ id: \"A\", title: \"t\", wacth: [] } }").contains("`wacth`"));
    assert!(refused(&format!("{HEAD} fn stores(e) {{ }}")).contains("no event called `stores`"));
}

/// The example of the documentation does what the built-in rule FP0401 does.
#[test]
fn the_documented_script_agrees_with_the_built_in_rule() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules/redundant_logging.rhai");
    let mut program = Program::new();
    program.scripts.push(Box::new(Script::read(&path).expect("the example is good")));
    for twice in [false, true] {
        program.call(10, "pmemobj_tx_begin", &[BASE, 0]);
        program.call(20, "pmemobj_tx_add_range", &[0xabc, 0x1000, 0, 64]);
        if twice {
            program.call(21, "pmemobj_tx_add_range_direct", &[BASE + 0x1020, 8]);
        }
        program.store(30, 0x1000).call(40, "pmemobj_tx_commit", &[]).persist(41, 0x1000);
        program.call(43, "pmemobj_tx_end", &[]);
    }
    program.finds(&[("EX0401", 21), ("FP0401", 21)]);
}
