//! Records a recovery on a crash image, with private files in place of the pools.

use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crash::image::CrashImage;
use record::flow::FlowHandle;
use record::probe_host::{HostError, ProbeRecorder};
use record::recorder::RecordOptions;
use record::recording::Recording;
use record::stop::StopRequest;
use record::target::{Target, TargetError};
use recover::command::Command;
use supervise::cancel::Cancel;
use supervise::probe::Substituted;
use trace::event::PoolId;
use trace::{Meta, TraceWriter, WriteError};

use crate::image_file::write_image;

#[derive(Debug, thiserror::Error)]
pub enum RecordRecoveryError {
    #[error("cannot prepare the recording of a recovery: {0}")]
    Io(#[from] io::Error),
    #[error("recovery cannot be recorded: {0}")]
    Record(#[from] HostError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes an image into files of a folder: one per pool, by its number.
pub fn put_image(image: &CrashImage<'_>, pools: &[(PathBuf, u64)], folder: &Path) -> io::Result<Vec<Substituted>> {
    let mut private = Vec::new();
    for (number, (path, _)) in pools.iter().enumerate() {
        let folder = folder.join(number.to_string());
        fs::create_dir_all(&folder)?;
        let file = folder.join(path.file_name().unwrap_or(path.as_os_str()));
        write_image(&file, image, PoolId(number as u32))?;
        private.push(Substituted { path: path.clone(), private: file });
    }
    Ok(private)
}

/// How exact its limit is.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// A recovery that is about to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryRecording<'a> {
    pub command: &'a Command,
    pub private: &'a [Substituted],
    /// It is killed if it takes longer.
    pub limit: Option<Duration>,
    pub cancel: &'a Cancel,
}

impl RecoveryRecording<'_> {
    /// Gives it `input` on its standard input; what it writes is thrown away.
    pub fn record(
        &self,
        input: &[u8],
        flow: Option<FlowHandle>,
        trace: &Path,
    ) -> Result<Recording, RecordRecoveryError> {
        let command = self.command;
        let words: Vec<OsString> =
            std::iter::once(command.program.clone().into_os_string()).chain(command.args.iter().cloned()).collect();
        let executable = command.executable().unwrap_or_else(|| command.program.clone());
        let mut target = Target::of(&executable, &words, &command.env)?;
        let stdin = match input {
            [] => File::open("/dev/null")?,
            bytes => {
                let path = trace.with_extension("input");
                fs::write(&path, bytes)?;
                File::open(path)?
            }
        };
        let nowhere = File::options().write(true).open("/dev/null")?;
        let stop = StopRequest::new();
        let recorder = ProbeRecorder::new(&stop);
        target.directory = CString::new(command.dir.as_os_str().as_bytes()).ok();
        target.streams = Some([stdin.as_raw_fd(), nowhere.as_raw_fd(), nowhere.as_raw_fd()]);
        let options = RecordOptions {
            pm: self.private.iter().map(|pool| pool.private.display().to_string()).collect(),
            substitutes: self.private.to_vec(),
            flow,
            ..RecordOptions::default()
        };
        let meta = Meta {
            command: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            cwd: command.dir.display().to_string(),
            recorder: "probe".to_owned(),
            options: Vec::new(),
        };
        let writer = TraceWriter::create(trace, meta)?;
        let (over, waiting) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let (stop, until) = (&stop, self.limit.map(|limit| Instant::now() + limit));
            scope.spawn(move || {
                let is_late = || until.is_some_and(|until| Instant::now() >= until);
                while waiting.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
                    if is_late() || self.cancel.is_cancelled() {
                        // The second time is not asked but done.
                        stop.interrupt();
                        stop.interrupt();
                        return;
                    }
                }
            });
            let recording = recorder.run(&target, &options, writer);
            drop(over);
            Ok(recording?)
        })
    }
}
