//! Builds the probe and hands it to the crate as bytes.
//!
//! The probe is freestanding: it has its own link line, profile and lock file, and must not see the flags
//! of the build that it is nested in. `FENCEPOST_NO_PROBE=1` leaves it out (quick lints); the backend then
//! says so at run time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Settings of the outer cargo that say how to reach the registry, not how to compile.
const KEPT: [&str; 7] =
    ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_", "CARGO_TERM_"];

/// Variables without the `CARGO_` prefix that would change how the probe is compiled.
const CLEARED: [&str; 12] = [
    "RUSTFLAGS",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "TARGET",
    "HOST",
    "PROFILE",
    "OPT_LEVEL",
    "DEBUG",
    "MAKEFLAGS",
];

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let crates = manifest.parent().expect("the crate lies in crates/");
    let probe = crates.join("probe");

    println!("cargo::rerun-if-env-changed=FENCEPOST_NO_PROBE");
    for part in ["Cargo.toml", "Cargo.lock", ".cargo", "build.rs", "src"] {
        println!("cargo::rerun-if-changed={}", probe.join(part).display());
    }
    for other in ["isa", "syscalls", "wire"] {
        println!("cargo::rerun-if-changed={}", crates.join(other).join("src").display());
        println!("cargo::rerun-if-changed={}", crates.join(other).join("Cargo.toml").display());
    }

    let embedded = out.join("probe.elf");
    let skip = env::var_os("FENCEPOST_NO_PROBE").is_some_and(|v| v == "1");
    if skip {
        fs::write(&embedded, []).unwrap_or_else(|e| panic!("write {}: {e}", embedded.display()));
    } else {
        let binary = build(&probe, &target_directory(&out), profile(&out));
        let image = fs::read(&binary).unwrap_or_else(|e| panic!("read {}: {e}", binary.display()));
        fs::write(&embedded, loaded_part(image)).unwrap_or_else(|e| panic!("write {}: {e}", embedded.display()));
    }
}

/// The part of the executable that the kernel loads. Debug information, two thirds of the file, would be copied into memory at each start of a
/// target; who debugs the probe has it in `target/probe/release/probe`.
fn loaded_part(mut image: Vec<u8>) -> Vec<u8> {
    // ELF64 (System V gABI, "ELF Header" and "Program Header"): where the fields are, and the type of a segment that is loaded.
    const SECTION_HEADERS: [std::ops::Range<usize>; 2] = [0x28..0x30, 0x3a..0x40];
    const LOAD: usize = 1;
    let number = |at: usize, bytes: usize| {
        image[at..at + bytes].iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte))
    };
    assert!(image.starts_with(b"\x7fELF\x02\x01"), "the probe is not a little-endian ELF64 file");
    let (headers, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    let segments = (0..count).map(|index| headers + index * size);
    let end = segments.filter(|&at| number(at, 4) == LOAD).map(|at| number(at + 8, 8) + number(at + 0x20, 8)).max();
    image.truncate(end.expect("a segment to load"));
    for fields in SECTION_HEADERS {
        image[fields].fill(0);
    }
    image
}

/// `target/probe` beside the directories of the outer build's profiles, so that debug, release and lint builds share one
/// probe; it is compiled the same way for all of them.
fn target_directory(out: &Path) -> PathBuf {
    // target/PROFILE/build/supervise-HASH/out
    match out.ancestors().nth(4) {
        Some(target) if out.ends_with("out") => target.join("probe"),
        _ => out.join("probe"),
    }
}

/// The probe's profile. Only `./demo` has one of its own.
fn profile(out: &Path) -> &'static str {
    // target/PROFILE/build/supervise-HASH/out; `PROFILE` in the environment is what it inherits from.
    let is_demo = out.ancestors().nth(3).is_some_and(|folder| folder.ends_with("demo"));
    if is_demo { "demo" } else { "release" }
}

fn build(probe: &Path, target_dir: &Path, profile: &str) -> PathBuf {
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    cargo.args(["build", "--profile", profile, "--locked", "--bin", "probe", "--target-dir"]).arg(target_dir);
    cargo.current_dir(probe);
    for (name, _) in env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        let compiles = text.starts_with("CARGO") && !KEPT.iter().any(|kept| text.starts_with(kept));
        if compiles || CLEARED.contains(&text) {
            cargo.env_remove(&name);
        }
    }
    let status = cargo.status().unwrap_or_else(|e| panic!("cannot start cargo for crates/probe: {e}"));
    // A build without the probe must be asked for: it would look like a whole one until somebody records with it.
    assert!(status.success(), "crates/probe does not build; FENCEPOST_NO_PROBE=1 builds everything else without it");
    target_dir.join(profile).join("probe")
}
