//! Records a target with the probe: start, collect, finish.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use supervise::mounts::Mounts;
use supervise::probe::{
    Isolation, Launch, LaunchError, Launched, ProbeImage, ProbeOptions, Shared, futex_wake, ring_doorbell,
};
use supervise::supervised::Supervised;
use trace::event::{ExitStatus, PoolId};
use trace::{Outcome, PoolContent, Severity, TraceWriter};

use super::collect::{Collector, End};
use super::error::HostError;
use super::flow::Flow;
use super::pool_files::PoolFiles;
use super::translate::{Refusal, Translator};
use crate::recorder::{RecordOptions, Recorded, Recorder};
use crate::recording::Recording;
use crate::stop::StopRequest;
use crate::target::Target;

/// When a recording is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// When the target and every process that it started have ended.
    #[default]
    AllEnd,
    /// When the target's first process ends; others are killed then.
    FirstEnds,
}

/// The probe backend with its own settings.
#[derive(Clone, Debug)]
pub struct ProbeRecorder<'a> {
    /// How the user ends the recording early.
    pub stop: &'a StopRequest,
    pub until: Until,
    /// Run the target in its own PID namespace if the system allows.
    pub namespaces: bool,
    /// Size of the code caches; 0: the probe's default.
    pub cache_bytes: u64,
    pub probe: ProbeImage,
}

impl<'a> ProbeRecorder<'a> {
    /// With the usual settings.
    pub fn new(stop: &'a StopRequest) -> ProbeRecorder<'a> {
        ProbeRecorder { stop, until: Until::AllEnd, namespaces: true, cache_bytes: 0, probe: ProbeImage::Embedded }
    }

    /// Runs the target to its end and writes what it does to `writer`.
    pub fn run(
        &self,
        target: &Target,
        options: &RecordOptions,
        mut writer: TraceWriter,
    ) -> Result<Recording, HostError> {
        let mut shared = Shared::create(0)?;
        shared.configure(&target.path, &self.probe_options(target, options))?;
        for symbol in &options.watch {
            writer.watch(symbol);
        }
        let launch = Launch {
            probe: &self.probe,
            target,
            shared: &shared,
            namespaces: self.namespaces,
            mounts: &Mounts::default(),
            until_first: self.until == Until::FirstEnds,
            directory: target.directory.as_deref(),
            streams: target.streams,
        };
        let Launched { supervised, socket, isolation } = launch.start()?;
        let pools = PoolFiles::new(socket);
        let mut translator = Translator::new(writer, &shared, pools, options.watch.clone());
        translator.flow = options.flow.as_ref().map(|handle| Flow::new(handle, options.values.is_some()));
        collect(&shared, supervised, isolation, translator, self.stop)
    }

    fn probe_options(&self, target: &Target, options: &RecordOptions) -> ProbeOptions {
        ProbeOptions {
            pools: options.pm.clone(),
            watch: options.watch.clone(),
            loads: options.loads,
            flow: options.flow.is_some(),
            input: options.values.map(|file| (file.device, file.inode)),
            real_time: options.real_time,
            real_random: options.real_random,
            real_tsc: options.real_tsc,
            operations_stdin: options.operations_stdin,
            substitutes: options.substitutes.clone(),
            files: options.files,
            streams: target.streams,
            cache_bytes: self.cache_bytes,
        }
    }
}

impl Recorder for ProbeRecorder<'_> {
    type Error = HostError;

    fn name(&self) -> &'static str {
        "probe"
    }

    fn record(&self, target: &Target, options: &RecordOptions, trace: TraceWriter) -> Result<Recorded, HostError> {
        let recording = self.run(target, options, trace)?;
        Ok(Recorded { status: recording.target, summary: recording.summary })
    }
}

fn collect(
    shared: &Shared,
    running: Supervised,
    isolation: Isolation,
    mut translator: Translator<'_>,
    stop: &StopRequest,
) -> Result<Recording, HostError> {
    let running = &running;
    let all_ended = AtomicBool::new(false);
    let end = thread::scope(|scope| {
        scope.spawn(|| {
            while !running.wait(Duration::from_secs(60)) {}
            all_ended.store(true, Ordering::Release);
            ring_doorbell(shared.control());
        });
        let collector = Collector { shared, running, all_ended: &all_ended, stop };
        let unfinished = EndUnfinished { shared, running };
        let end = collector.run(&mut translator);
        if end.is_ok() {
            mem::forget(unfinished);
        }
        end
    });
    if let Some((stage, error)) = running.failure() {
        return Err(LaunchError::not_started(stage, error).into());
    }
    let end = match end {
        Ok(end) => end,
        Err(error) => {
            abandon(translator, &error);
            return Err(error);
        }
    };
    finish(running, isolation, translator, end, stop)
}

/// Ends the target when the host cannot go on, be it by an error or a panic: the thread that waits for the target's
/// processes would wait forever.
struct EndUnfinished<'a> {
    shared: &'a Shared,
    running: &'a Supervised,
}

impl Drop for EndUnfinished<'_> {
    fn drop(&mut self) {
        let control = self.shared.control();
        control.stop.store(1, Ordering::SeqCst);
        // Producers may wait for room that nobody will make.
        control.tail_moved.fetch_add(1, Ordering::SeqCst);
        futex_wake(&control.tail_moved);
        self.running.end_all();
    }
}

fn finish(
    running: &Supervised,
    isolation: Isolation,
    mut translator: Translator<'_>,
    end: End,
    stop: &StopRequest,
) -> Result<Recording, HostError> {
    let status = running.outcome().unwrap_or(ExitStatus::Signal(libc::SIGKILL));
    translator.end_killed_processes(status).map_err(|refusal| match refusal {
        Refusal::Host(error) => error,
        Refusal::Damaged(what) => HostError::Damaged { what, at: 0 },
    })?;
    if isolation == Isolation::Refused {
        let text = "no PID namespace is allowed here: process numbers differ from run to run, and recordings of \
                    programs that store them will too";
        translator.note(Severity::Note, text.to_owned());
    }
    if let Some(flow) = &mut translator.flow {
        flow.finish();
    }
    let Translator { mut writer, pools, book, activity, notes, .. } = translator;
    let names = book.finals(&writer);
    writer.final_names(&names)?;
    let infos = pools.infos().cloned().collect();
    let mut files = pools.into_files();
    let mut finals: Vec<(PoolId, &mut dyn PoolContent)> =
        files.iter_mut().map(|(id, _, file)| (*id, file as &mut dyn PoolContent)).collect();
    let outcome = if end == End::Killed { Outcome::Interrupted } else { Outcome::Ended(status) };
    let summary = writer.finish(&mut finals, outcome)?;
    Ok(Recording { target: status, summary, pools: infos, activity, notes, interrupted: stop.count() > 0 })
}

/// Ends the trace of a recording that failed: what is there stays readable and is marked as failed.
fn abandon(mut translator: Translator<'_>, error: &HostError) {
    if matches!(error, HostError::Write(_)) {
        return;
    }
    translator.note(Severity::Fatal, error.to_string());
    // Without the final content of the pools: the trace says that it is not whole.
    let _ = translator.writer.finish(&mut [], Outcome::Failed);
}
