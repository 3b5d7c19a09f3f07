//! What `--version` says about this build. Without git, or outside its repository, the commit is unknown.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=FENCEPOST_COMMIT");
    let profile = profile();
    let given = env::var("FENCEPOST_COMMIT").ok().filter(|commit| !commit.is_empty());
    // Looking at every commit would compile the crate anew after each, which a development build should not pay for.
    let commit = given.or_else(|| (profile != "debug").then(commit)?).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=FENCEPOST_BUILD_COMMIT={commit}");
    println!("cargo::rustc-env=FENCEPOST_BUILD_TARGET={}", env::var("TARGET").unwrap_or_default());
    println!("cargo::rustc-env=FENCEPOST_BUILD_PROFILE={profile}");
}

/// `PROFILE` says only what the profile inherits from, if `./demo` builds.
fn profile() -> String {
    // target/PROFILE/build/fencepost-HASH/out
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let is_demo = out.ancestors().nth(3).is_some_and(|folder| folder.ends_with("demo"));
    if is_demo { "demo".to_owned() } else { env::var("PROFILE").unwrap_or_default() }
}

fn commit() -> Option<String> {
    // The sources may lie in somebody else's repository.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    // Whether files were changed since is not said: this program does not run again when they are.
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
