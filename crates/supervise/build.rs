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
        let binary = build(&probe, &target_directory(&out));
        fs::copy(&binary, &embedded).unwrap_or_else(|e| panic!("copy {}: {e}", binary.display()));
    }
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

fn build(probe: &Path, target_dir: &Path) -> PathBuf {
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    cargo.args(["build", "--release", "--locked", "--bin", "probe", "--target-dir"]).arg(target_dir);
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
    target_dir.join("release/probe")
}
