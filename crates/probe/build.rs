//! The link line of a freestanding program at a fixed address (for rust-lld, the linker of the stable toolchain).
fn main() {
    for arg in [
        "-nostartfiles",
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,--image-base=0x70000000",
        "-Wl,--build-id=none",
        "-Wl,-z,norelro",
        "-Wl,-z,noexecstack",
    ] {
        println!("cargo:rustc-link-arg-bins={arg}");
    }
}
