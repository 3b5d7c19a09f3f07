//! Altered records: a target with a wild pointer may write into the ring. They are refused, or become a trace.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};

use parser_tests::hammer::hammer;
use supervise::probe::Shared;
use trace::event::{CodeAddr, ExitStatus, ProcessId, ThreadId};
use trace::{Meta, Outcome, PoolInfo, TraceReader, TraceWriter};
use wire::record::{HEADER_BYTES, Header, flush, kind, record_bytes, store};

use super::flow::Flow;
use super::pool_files::{PoolFiles, WirePool};
use super::translate::Translator;
use crate::flow::{BlockId, FlowHandle, FlowSink, Part};

const BASE: u64 = 0x7000_0000;
const POOL_BYTES: u64 = 8192;

/// A record as it lies in the ring.
fn record(header: Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![header.kind, header.aux];
    bytes.extend(header.thread.to_le_bytes());
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(header.site.to_le_bytes());
    bytes.extend(header.context.to_le_bytes());
    bytes.extend(header.address.to_le_bytes());
    bytes.extend(payload);
    bytes.resize(record_bytes(payload.len()), 0);
    bytes
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn of_kind(kind: u8, address: u64, payload: &[u8]) -> Vec<u8> {
    record(Header { kind, address, site: 1, context: 1, ..Header::default() }, payload)
}

/// The start of every recording: a process, its code, an instruction, a call path and a mapping.
fn start() -> Vec<u8> {
    let define = |kind, site, context, payload: &[u8]| {
        record(Header { kind, site, context, address: 0x40_1000, ..Header::default() }, payload)
    };
    [
        record(
            Header { kind: kind::PROCESS_START, ..Header::default() },
            &[words(&[0xffff_ffff << 32]), vec![1; 4]].concat(),
        ),
        record(
            Header { kind: kind::MODULE, address: 0x40_0000, ..Header::default() },
            &[words(&[0x2000, 0]), b"no-such-program".to_vec()].concat(),
        ),
        define(kind::SITE, 1, 0, &[0x48, 0x89, 0x07]),
        define(kind::CONTEXT, 0, 1, &[]),
        of_kind(kind::MAP, BASE, &words(&[0, 0, POOL_BYTES])),
    ]
    .concat()
}

/// Recordings with records of every kind.
fn recordings() -> Vec<Vec<u8>> {
    let with = |aux, kind, address, payload: &[u8]| {
        record(Header { kind, aux, site: 1, context: 1, address, ..Header::default() }, payload)
    };
    let memory = [
        with(store::NON_TEMPORAL, kind::STORE, BASE + 64, b"12345678"),
        of_kind(kind::RMW, BASE + 8, b"oldnew"),
        with(flush::CLWB, kind::FLUSH, BASE + 64, &[]),
        of_kind(kind::FENCE, 0, &[]),
        of_kind(kind::LOAD, BASE + 16, &words(&[8])),
        of_kind(kind::KERNEL_WRITE, BASE + 4090, b"across pages"),
        of_kind(kind::FILE_WRITE, 100, &[words(&[0]), b"text".to_vec()].concat()),
        of_kind(kind::FILE_ZERO, 100, &words(&[0, 300])),
        of_kind(kind::MSYNC, 0, &words(&[0, 0, 4096])),
        of_kind(kind::FSYNC, 0, &words(&[0])),
        of_kind(kind::RESIZE, 4096, &words(&[0])),
        of_kind(kind::UNMAP, BASE, &words(&[0, 0, 4096])),
    ];
    let processes = [
        record(Header { kind: kind::THREAD_START, thread: 1, ..Header::default() }, &words(&[0])),
        record(
            Header { kind: kind::PROCESS_START, thread: 2, aux: 1, ..Header::default() },
            &[words(&[1]), vec![2; 4]].concat(),
        ),
        record(Header { kind: kind::EXEC, thread: 2, ..Header::default() }, b"program"),
        of_kind(kind::OPERATION, 3, &[]),
        of_kind(kind::CALL, 0, &words(&[1, 2, 3, 4, 5, 6])),
        of_kind(kind::RETURN, 0, &words(&[7])),
        with(1, kind::MESSAGE, 0, b"something to know"),
        of_kind(kind::PLEASE, 1, &[]),
        record(Header { kind: kind::THREAD_END, thread: 1, ..Header::default() }, &[]),
        with(1, kind::PROCESS_EXIT, 9, &[]),
    ];
    let files = [
        of_kind(kind::FILE_BEFORE, 0, b"\x01\0\0\0f"),
        of_kind(kind::FILE_AFTER, 0, &[]),
        of_kind(kind::FILE_DATA, 0, &[words(&[1, 2]), b"data".to_vec()].concat()),
        of_kind(kind::FILE_LEN, 10, &words(&[1, 2])),
        of_kind(kind::FILE_HOLE, 10, &words(&[1, 2, 3])),
        of_kind(kind::FILE_SYNC, 0, &words(&[0, 0])),
        of_kind(kind::POOL, 1, &[words(&[1, 3, 4096]), b"other".to_vec()].concat()),
    ];
    let block = Header { kind: kind::BLOCK, site: 1, address: 0x40_1000, ..Header::default() };
    let whole = u64::from(wire::record::flow::whole(1)) | 0xffff_ffff << 32;
    let flow = [
        record(block, &[0x48, 0x89, 0x07, 0xc3]),
        of_kind(kind::FLOW, 0, &words(&[whole, BASE, BASE])),
        of_kind(kind::FLOW_WRITE, BASE, &words(&[8])),
        of_kind(kind::FLOW_INPUT, 0x5000, &words(&[8, 0])),
        of_kind(kind::FLOW_CHANNEL, 0x5000, b"sent"),
    ];
    [&memory[..], &processes[..], &files[..], &flow[..]].map(|records| [start(), records.concat()].concat()).to_vec()
}

/// Takes the flow, and does nothing with it.
struct Nobody;

impl FlowSink for Nobody {
    fn define(&mut self, _: BlockId, _: ProcessId, _: u64, _: CodeAddr, _: &[u8]) {}
    fn executed(&mut self, _: ThreadId, _: BlockId, _: &[u64]) {}
    fn part(&mut self, _: ThreadId, _: BlockId, _: Part, _: &[u64]) {}
}

/// Translates a stream up to the first record that is refused; the trace of what came before can be read.
fn translate(stream: &[u8], folder: &Path, shared: &Shared) {
    let path = folder.join("trace");
    let mut writer = TraceWriter::create(&path, Meta::default()).expect("a trace");
    let info = PoolInfo { path: "pool".into(), len: POOL_BYTES };
    let pool = || &[0; POOL_BYTES as usize][..];
    let id = writer.pool(info.clone(), &mut pool()).expect("a pool");
    writer.watch("put");
    // Nobody is at the other end: no further pool can come.
    let (socket, _) = UnixStream::pair().expect("a pair");
    let mut pools = PoolFiles::new(OwnedFd::from(socket));
    pools.add(WirePool(0), id, info, File::open("/dev/null").expect("a file"));
    let handle = FlowHandle::new(Arc::new(Mutex::new(Nobody)));
    let mut translator = Translator::new(writer, shared, pools, vec!["put".into()]);
    translator.flow = Some(Flow::new(&handle, false));
    let mut rest = stream;
    while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let header = parse(header);
        let Some(payload) = after.get(..header.size as usize) else { break };
        if translator.record(&header, payload).is_err() {
            break;
        }
        rest = rest.get(record_bytes(payload.len())..).unwrap_or_default();
    }
    let ended = Outcome::Ended(ExitStatus::Code(0));
    translator.writer.finish(&mut [(id, &mut pool())], ended).expect("the trace can be written");
    let reader = TraceReader::open(&path).expect("the trace can be read");
    let mut events = reader.events();
    while events.next().expect("its events can be read").is_some() {}
}

/// What [`record`] wrote.
fn parse(bytes: &[u8; HEADER_BYTES]) -> Header {
    let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Header {
        kind: bytes[0],
        aux: bytes[1],
        thread: u16::from_le_bytes([bytes[2], bytes[3]]),
        size: u32_at(4),
        site: u32_at(8),
        context: u32_at(12),
        address: u64::from(u32_at(16)) | u64::from(u32_at(20)) << 32,
    }
}

#[test]
fn altered_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let shared = Shared::create(0).expect("memory");
    hammer("records", &recordings(), &|input| translate(input, folder.path(), &shared));
}
