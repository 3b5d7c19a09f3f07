//! Maps an address in the process to its file, function and source line.

use addr2line::Loader;

use crate::follow::Mapped;

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodePlace {
    /// The file with the code.
    pub module: String,
    /// In that file.
    pub address: u64,
    pub function: Option<String>,
    /// File and line, if there is debug information.
    pub source: Option<(String, u32)>,
}

/// Where `pc` is; none: in no file, as code that was made at run time.
pub fn located(mapped: &[Mapped], pc: u64) -> Option<CodePlace> {
    let one = mapped.iter().find(|one| (one.address..one.address + one.len).contains(&pc))?;
    let address = pc.wrapping_sub(crate::constant::bias(one.address, &one.path, one.offset)?);
    let loader = Loader::new(&one.path).ok();
    let location = loader.as_ref().and_then(|loader| loader.find_location(address).ok().flatten());
    let source = location.and_then(|location| Some((location.file?.to_owned(), location.line?)));
    let function = loader.as_ref().and_then(|loader| loader.find_symbol(address)).map(str::to_owned);
    Some(CodePlace { module: one.path.clone(), address, function, source })
}
