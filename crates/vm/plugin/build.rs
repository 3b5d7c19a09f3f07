//! QEMU provides the functions of its plugin interface. Nothing linked here does, so tests of the plugin's own parts leave them undefined.

fn main() {
    println!("cargo:rustc-link-arg=-Wl,--unresolved-symbols=ignore-all");
    println!("cargo:rerun-if-changed=build.rs");
}
