//! A crash image as a sparse file.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use crash::image::CrashImage;
use trace::event::PoolId;

/// Writes the content of one pool: only what is not zero.
pub fn write_image(path: &Path, image: &CrashImage<'_>, pool: PoolId) -> io::Result<()> {
    let mut file = File::create(path)?;
    let guaranteed = image.guaranteed();
    file.set_len(guaranteed.len(pool))?;
    let mut put = |offset: u64, bytes: &[u8]| -> io::Result<()> {
        let bytes = &bytes[..bytes.len().min(guaranteed.len(pool).saturating_sub(offset) as usize)];
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    };
    for (number, page) in guaranteed.pages(pool) {
        put(number * page.len() as u64, page)?;
    }
    for (line, bytes) in image.lines().iter().filter(|(line, _)| line.pool == pool) {
        put(line.start().offset.0, bytes)?;
    }
    Ok(())
}
