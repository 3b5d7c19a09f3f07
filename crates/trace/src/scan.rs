//! Reading the chunks of a file: from the start, as far as they are whole.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Decompressor;

use crate::error::{Malformed, ReadError};
use crate::format::{CHUNK_HEADER, ChunkHeader, FILE_HEADER, MAGIC, VERSION};

thread_local! {
    /// Its tables are larger than what `malloc` keeps: a new one for each chunk would mean new pages for each.
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// A whole chunk of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub offset: u64,
    pub header: ChunkHeader,
}

#[derive(Debug)]
pub(crate) struct ChunkFile {
    file: File,
    path: PathBuf,
    len: u64,
}

impl ChunkFile {
    /// Checks magic and version.
    pub fn open(path: &Path) -> Result<ChunkFile, ReadError> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let mut header = [0; FILE_HEADER];
        let have = len.min(FILE_HEADER as u64) as usize;
        file.read_exact_at(&mut header[..have], 0).map_err(io)?;
        let magic = have.min(MAGIC.len());
        if header[..magic] != MAGIC[..magic] {
            return Err(ReadError::NotATrace { path: path.to_owned() });
        }
        let version = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
        if have >= 12 && version != VERSION {
            return Err(ReadError::Version { path: path.to_owned(), found: version, known: VERSION });
        }
        Ok(ChunkFile { file, path: path.to_owned(), len })
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// The chunk that begins at `offset`; none where the file ends before it does.
    pub fn chunk_at(&self, offset: u64) -> Result<Option<Chunk>, ReadError> {
        if self.len.saturating_sub(offset) < CHUNK_HEADER as u64 {
            return Ok(None);
        }
        let mut bytes = [0; CHUNK_HEADER];
        self.read(offset, &mut bytes)?;
        let header = ChunkHeader::decode(&bytes).map_err(|what| self.corrupt(offset, what))?;
        Ok((self.len - offset >= header.file_len()).then_some(Chunk { offset, header }))
    }

    pub fn head(&self, chunk: &Chunk) -> Result<Vec<u8>, ReadError> {
        let header = chunk.header;
        let mut raw = Vec::new();
        let at = chunk.offset + CHUNK_HEADER as u64;
        self.unpack(chunk, at, header.head_len, header.head_sum, header.head_raw, &mut Vec::new(), &mut raw)?;
        Ok(raw)
    }

    /// Unpacks the body of a chunk into `raw`; `packed` is scratch space.
    pub fn body(&self, chunk: &Chunk, packed: &mut Vec<u8>, raw: &mut Vec<u8>) -> Result<(), ReadError> {
        let header = chunk.header;
        let at = chunk.offset + CHUNK_HEADER as u64 + u64::from(header.head_len);
        self.unpack(chunk, at, header.body_len, header.body_sum, header.body_raw, packed, raw)
    }

    #[expect(clippy::too_many_arguments, reason = "the two halves of a chunk differ in all of these")]
    fn unpack(
        &self,
        chunk: &Chunk,
        at: u64,
        len: u32,
        sum: u64,
        raw_len: u32,
        packed: &mut Vec<u8>,
        raw: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        raw.clear();
        if len == 0 && raw_len == 0 {
            return Ok(());
        }
        packed.resize(len as usize, 0);
        self.read(at, packed)?;
        if xxh3_64(packed) != sum {
            return Err(self.corrupt(chunk.offset, Malformed("wrong checksum of a chunk")));
        }
        raw.reserve_exact(raw_len as usize);
        let unpacked = UNPACKER.with_borrow_mut(|unpacker| {
            let unpacker = match unpacker {
                Some(unpacker) => unpacker,
                none => none.insert(Decompressor::new()?),
            };
            unpacker.decompress_to_buffer(packed, raw)
        });
        if !unpacked.is_ok_and(|unpacked| unpacked == raw_len as usize) {
            return Err(self.corrupt(chunk.offset, Malformed("a chunk cannot be unpacked")));
        }
        Ok(())
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.file.read_exact_at(buffer, offset).map_err(|source| {
            // It was longer when it was opened.
            if source.kind() == io::ErrorKind::UnexpectedEof {
                return self.corrupt(offset, Malformed("the file has become shorter"));
            }
            ReadError::Io { path: self.path.clone(), source }
        })
    }

    pub fn corrupt(&self, offset: u64, what: Malformed) -> ReadError {
        ReadError::Corrupt { path: self.path.clone(), offset, what: what.0 }
    }
}
