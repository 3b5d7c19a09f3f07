//! A case with its recording: what lint and crash search work on.

use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};

use record::flow::{FlowHandle, InputFile};
use record::probe_host::{HostError, ProbeRecorder};
use record::recorder::RecordOptions;
use record::recording::Recording;
use record::stop::StopRequest;
use record::target::{Target, TargetError};
use supervise::probe::Substituted;
use tempfile::TempDir;
use trace::{Meta, ReadError, TraceReader, TraceWriter, WriteError};

use crate::execute::{Delivery, Subject};
use crate::image::Image;

#[derive(Debug, thiserror::Error)]
pub enum RecordCaseError {
    #[error("cannot prepare the recording of a case: {0}")]
    Io(#[from] io::Error),
    #[error("a case cannot be recorded: {0}")]
    Record(#[from] HostError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A recording of a case, in a folder that goes away with it.
#[derive(Debug)]
pub struct RecordedCase {
    pub reader: TraceReader,
    pub recording: Recording,
    /// What the program wrote to standard output.
    pub answers: Vec<u8>,
    /// The path of each pool of the trace, as the user names it.
    pub pools: Vec<PathBuf>,
    pub folder: TempDir,
}

/// Records the target with this input on this starting pool. `watch` are functions that rules want to know of.
pub fn record_case(
    subject: &Subject,
    input: &[u8],
    start: &Image,
    watch: Vec<String>,
) -> Result<RecordedCase, RecordCaseError> {
    recorded(subject, input, start, watch, None)
}

/// The same, and gives the flow of the run with all values that the input may reach.
pub fn follow_case(
    subject: &Subject,
    input: &[u8],
    start: &Image,
    flow: FlowHandle,
) -> Result<RecordedCase, RecordCaseError> {
    recorded(subject, input, start, Vec::new(), Some(flow))
}

/// How much longer a recording may take than an execution, and how much longer if it is followed.
const SLOWER: u32 = 4;
const FOLLOWED: u32 = 20;

fn recorded(
    subject: &Subject,
    input: &[u8],
    start: &Image,
    watch: Vec<String>,
    flow: Option<FlowHandle>,
) -> Result<RecordedCase, RecordCaseError> {
    let folder = tempfile::Builder::new().prefix("fencepost-fuzz-").tempdir()?;
    let mut private = put(subject, start, folder.path())?;
    let mut command = subject.command.clone();
    let input_path = folder.path().join("input");
    fs::write(&input_path, input)?;
    match &subject.delivery {
        Delivery::File(path) => {
            private.push(Substituted { path: path.clone(), private: input_path.clone() });
            for word in &mut command.args {
                if word == "@@" {
                    *word = path.clone().into();
                }
            }
        }
        Delivery::Arguments => command.args.extend(crate::execute::arguments(input)),
        Delivery::Operations | Delivery::Stdin => {}
    }
    let is_read = matches!(subject.delivery, Delivery::Operations | Delivery::Stdin);
    let stdin = if is_read { File::open(&input_path)? } else { File::open("/dev/null")? };
    let answers_path = folder.path().join("answers");
    let answers = File::create(&answers_path)?;
    let nowhere = File::options().write(true).open("/dev/null")?;
    let words: Vec<OsString> =
        std::iter::once(command.program.clone().into_os_string()).chain(command.args.iter().cloned()).collect();
    let executable = command.executable().unwrap_or_else(|| command.program.clone());
    let mut target = Target::of(&executable, &words, &command.env)?;
    let stop = StopRequest::new();
    let recorder = ProbeRecorder::new(&stop);
    target.directory = CString::new(command.dir.as_os_str().as_bytes()).ok();
    target.streams = Some([stdin.as_raw_fd(), answers.as_raw_fd(), nowhere.as_raw_fd()]);
    let options = RecordOptions {
        substitutes: private.clone(),
        operations_stdin: subject.delivery == Delivery::Operations,
        watch,
        values: match &flow {
            Some(_) => {
                let identity = fs::metadata(&input_path)?;
                Some(InputFile { device: identity.dev(), inode: identity.ino() })
            }
            None => None,
        },
        flow,
        ..RecordOptions::default()
    };
    let meta = Meta {
        command: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        cwd: command.dir.display().to_string(),
        recorder: "probe".to_owned(),
        options: Vec::new(),
    };
    let trace = folder.path().join("case.fptrace");
    let writer = TraceWriter::create(&trace, meta)?;
    let (over, waiting) = mpsc::channel::<()>();
    let limit = subject.limits.wall * if options.flow.is_some() { FOLLOWED } else { SLOWER };
    let recording = std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                // The second time is not asked but done.
                stop.interrupt();
                stop.interrupt();
            }
        });
        let recording = recorder.run(&target, &options, writer);
        drop(over);
        recording
    })?;
    let reader = TraceReader::open(&trace)?;
    let named = |path: &str| {
        let known = private.iter().find(|pool| pool.private.as_os_str().as_bytes() == path.as_bytes());
        known.map_or_else(|| path.into(), |pool| pool.path.clone())
    };
    let pools = reader.tables().pools.iter().map(|pool| named(&pool.info.path)).collect();
    Ok(RecordedCase { reader, recording, answers: fs::read(answers_path)?, pools, folder })
}

/// Files of a folder that stand for the pools, with the content of the image.
fn put(subject: &Subject, start: &Image, folder: &std::path::Path) -> io::Result<Vec<Substituted>> {
    let folder = folder.canonicalize()?;
    let mut private = Vec::new();
    for (number, path) in subject.pools.iter().enumerate() {
        let folder = folder.join(number.to_string());
        fs::create_dir_all(&folder)?;
        let file = folder.join(path.file_name().unwrap_or(path.as_os_str()));
        if let Some(content) = start.pool(number) {
            content.write(&File::create(&file)?)?;
        }
        private.push(Substituted { path: path.clone(), private: file });
    }
    Ok(private)
}
