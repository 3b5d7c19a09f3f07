//! What recording the flow of a program costs: runs a command under flow mode with a sink that only counts.
//!
//! `cargo run --release -p record --example flow_count -- [--off] COMMAND...` (`--off`: the same without flow mode.)

use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use iced_x86::{Decoder, DecoderOptions};
use isa::flow::Layout;
use record::flow::{BlockId, FlowHandle, FlowSink, Part};
use record::probe_host::ProbeRecorder;
use record::recorder::{RecordOptions, Recorder};
use record::stop::StopRequest;
use record::target::Target;
use trace::event::{CodeAddr, ProcessId, ThreadId};
use trace::{Meta, TraceWriter};

#[derive(Default)]
struct Count {
    instructions: Vec<u32>,
    /// Addresses per block, each by itself.
    addresses: Vec<u32>,
    naive_words: u64,
    pcs: HashSet<u64>,
    blocks_run: u64,
    parts: u64,
    words: u64,
    executed: u64,
    kernel: u64,
}

impl FlowSink for Count {
    fn define(&mut self, _: BlockId, _: ProcessId, pc: u64, _: CodeAddr, bytes: &[u8]) {
        self.pcs.insert(pc);
        let instructions: Vec<_> = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).into_iter().collect();
        let layout = Layout::new(&instructions);
        self.addresses.push((0..instructions.len()).map(|n| layout.values(n).len() as u32).sum());
        self.instructions.push(instructions.len() as u32);
    }
    fn executed(&mut self, _: ThreadId, block: BlockId, words: &[u64]) {
        self.blocks_run += 1;
        self.words += 1 + words.len() as u64;
        self.executed += u64::from(self.instructions[block.0 as usize]);
        self.naive_words += 1 + u64::from(self.addresses[block.0 as usize]);
    }
    fn part(&mut self, _: ThreadId, _: BlockId, part: Part, words: &[u64]) {
        self.parts += 1;
        self.words += 1 + words.len() as u64;
        self.executed += (part.to - part.from) as u64;
    }
    fn kernel_wrote(&mut self, _: ThreadId, _: u64, _: u64) {
        self.kernel += 1;
    }
}

/// Processor seconds of this process, or of those that it waited for.
fn cpu(who: i32) -> f64 {
    // SAFETY: plain data; the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let off = arguments.first().is_some_and(|first| first == "--off");
    if off {
        arguments.remove(0);
    }
    let count = Arc::new(Mutex::new(Count::default()));
    let flow = (!off).then(|| FlowHandle::new(count.clone()));
    let options = RecordOptions { flow, ..RecordOptions::default() };
    let directory = tempfile::tempdir()?;
    let meta = Meta { command: Vec::new(), cwd: String::new(), recorder: "probe".to_owned(), options: Vec::new() };
    let path = std::env::var_os("FLOW_TRACE").map_or_else(|| directory.path().join("t.fptrace"), Into::into);
    let target = Target::resolve(&arguments)?;
    let stop = StopRequest::new();
    let start = Instant::now();
    let recorded = ProbeRecorder::new(&stop).record(&target, &options, TraceWriter::create(&path, meta)?)?;
    let seconds = start.elapsed().as_secs_f64();
    let count = count.lock().map_err(|_| "the sink failed")?;
    let per = |n: u64| n as f64 / count.executed.max(1) as f64;
    eprintln!(
        "{:?} in {seconds:.2} s (processor: target {:.2}, host {:.2}): {} instructions, {} blocks defined at {} addresses, {} run, {} parts, {:.2} bytes per instruction (every address: {:.2}), {:.0} MB/s, {:.1} million instructions/s, {} kernel writes",
        recorded.status,
        cpu(libc::RUSAGE_CHILDREN),
        cpu(libc::RUSAGE_SELF),
        count.executed,
        count.instructions.len(),
        count.pcs.len(),
        count.blocks_run,
        count.parts,
        8.0 * per(count.words),
        8.0 * per(count.naive_words),
        8.0 * count.words as f64 / seconds / 1e6,
        count.executed as f64 / seconds / 1e6,
        count.kernel,
    );
    Ok(())
}
