//! The thread that encodes, compresses and writes what a [`TraceWriter`](crate::TraceWriter) hands it, in order.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Compressor;

use crate::block::encode::Encoder;
use crate::block::pending::Pending;
use crate::format::{ChunkHeader, Tag, file_header};
use crate::shape::Shape;

/// Blocks and chunks that may wait for the thread: enough to keep both sides busy.
const QUEUE: usize = 2;
/// The columns leave little for zstd to find: level 3 saves 4 % on a PMDK b-tree and takes half as long again.
const LEVEL: i32 = 1;

pub(crate) enum Job {
    Chunk { tag: Tag, head: Vec<u8>, body: Vec<u8> },
    Definitions { records: Vec<u8>, shapes: Vec<Shape> },
    Block(Pending),
}

#[derive(Debug)]
pub(crate) struct Sink {
    jobs: Option<SyncSender<Job>>,
    spare: Receiver<Pending>,
    thread: Option<JoinHandle<io::Result<u64>>>,
}

impl Sink {
    pub fn start(file: File) -> io::Result<Sink> {
        let (jobs, incoming) = sync_channel(QUEUE);
        let (give_back, spare) = channel();
        let thread =
            std::thread::Builder::new().name("trace-sink".into()).spawn(move || run(file, &incoming, &give_back))?;
        Ok(Sink { jobs: Some(jobs), spare, thread: Some(thread) })
    }

    /// On failure, the thread's error.
    pub fn send(&mut self, job: Job) -> io::Result<()> {
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if sent { Ok(()) } else { Err(self.close().err().unwrap_or_else(|| io::Error::other("it is closed already"))) }
    }

    /// An empty block, used before if possible.
    pub fn spare_block(&self) -> Pending {
        self.spare.try_recv().unwrap_or_default()
    }

    /// Waits until all is written; the length of the file.
    pub fn close(&mut self) -> io::Result<u64> {
        self.jobs = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(io::Error::other("an earlier write failed")),
        }
    }
}

fn run(file: File, jobs: &Receiver<Job>, give_back: &Sender<Pending>) -> io::Result<u64> {
    let mut out = Output { file, written: 0, compressor: Compressor::new(LEVEL)? };
    out.write(&file_header())?;
    let mut encoder = Encoder::default();
    let (mut head, mut body) = (Vec::new(), Vec::new());
    for job in jobs {
        match job {
            Job::Chunk { tag, head, body } => out.chunk(tag, &head, &body)?,
            Job::Definitions { records, shapes } => {
                shapes.iter().for_each(|shape| encoder.define(shape));
                out.chunk(Tag::Definitions, &records, &[])?;
            }
            Job::Block(block) => {
                head.clear();
                body.clear();
                encoder.encode(&block, &mut head, &mut body);
                // Nobody may be there to take it any more; then it is just dropped.
                give_back.send(block).ok();
                out.chunk(Tag::Events, &head, &body)?;
            }
        }
    }
    Ok(out.written)
}

struct Output {
    file: File,
    written: u64,
    compressor: Compressor<'static>,
}

impl Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn chunk(&mut self, tag: Tag, head: &[u8], body: &[u8]) -> io::Result<()> {
        let mut pack = |raw: &[u8]| if raw.is_empty() { Ok(Vec::new()) } else { self.compressor.compress(raw) };
        let (packed_head, packed_body) = (pack(head)?, pack(body)?);
        let header = ChunkHeader {
            tag,
            head_len: packed_head.len() as u32,
            body_len: packed_body.len() as u32,
            head_raw: head.len() as u32,
            body_raw: body.len() as u32,
            body_sum: xxh3_64(&packed_body),
            head_sum: xxh3_64(&packed_head),
        };
        self.write(&header.encode())?;
        self.write(&packed_head)?;
        self.write(&packed_body)
    }
}
