//! QEMU has the functions of its plugin interface: nothing that is linked here does, so the tests of the plugin's own parts leave them open.

fn main() {
    println!("cargo:rustc-link-arg=-Wl,--unresolved-symbols=ignore-all");
    println!("cargo:rerun-if-changed=build.rs");
}
