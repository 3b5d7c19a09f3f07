//! Records that define what later records refer to by number: processes, instructions, call paths, code, pools.

use std::sync::atomic::Ordering;

use trace::event::{CodeAddr, EventKind, ProcessId, ThreadId};
use trace::{Note, PoolInfo, Severity};
use wire::record::{Header, kind};

use super::error::HostError;
use super::payload::Payload;
use super::pool_files::WirePool;
use super::process::{InstructionName, Process, Site};
use super::translate::{Refusal, Translator};
use crate::file_book::FileKey;
use crate::recording::is_libpmem;
use supervise::probe::futex_wake;

impl Translator<'_> {
    pub(super) fn start_process(
        &mut self,
        header: &Header,
        id: ProcessId,
        parent: Option<ProcessId>,
        pid: u32,
    ) -> Result<(), Refusal> {
        let thread = ThreadId(header.thread.into());
        let known = |id: ProcessId| self.processes.iter().position(|p| p.id == id);
        let process = match parent {
            None => Process::new(id, pid, thread),
            Some(parent) => {
                let at = known(parent).ok_or(Refusal::Damaged("a child of an unknown process"))?;
                let shares = (header.aux == 1).then(|| self.processes[at].shares.unwrap_or(at));
                let mut child = self.processes[at].fork(id, pid, thread);
                child.shares = shares;
                child
            }
        };
        if known(id).is_some() {
            return Err(Refusal::Damaged("a process that started twice"));
        }
        self.processes.push(process);
        self.assign(header.thread, self.processes.len() - 1);
        self.push(header, EventKind::ProcessStart { process: id, parent })
    }

    pub(super) fn exec(&mut self, header: &Header) -> Result<(), Refusal> {
        let process = self.own_index(header.thread)?;
        let process = &mut self.processes[process];
        process.exec();
        self.shared.forget_watch_sites(process.pid);
        Ok(())
    }

    pub(super) fn definition(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Refusal> {
        match header.kind {
            kind::SITE => self.site(header, bytes),
            kind::CONTEXT => self.context(header),
            kind::MODULE => self.module(header, Payload(bytes)),
            kind::POOL => self.new_pool(header, Payload(bytes)),
            kind::MESSAGE => self.message(header, Payload(bytes)),
            _ => {
                self.answer(header.address as u32);
                Ok(())
            }
        }
    }

    fn site(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Refusal> {
        let process = self.process_index(header.thread)?;
        let process = &mut self.processes[process];
        let pc = process.code.locate(&mut self.writer, header.address);
        let site = Site { pc, name: InstructionName::decode(bytes), defined: true };
        if !process.define_site(header.site, site) {
            return Err(Refusal::Damaged("an instruction with an absurd number"));
        }
        Ok(())
    }

    fn context(&mut self, header: &Header) -> Result<(), Refusal> {
        let process = self.process_index(header.thread)?;
        let process = &mut self.processes[process];
        let parent =
            process.context(header.site).ok_or(Refusal::Damaged("a call path above that was never defined"))?;
        // The call is the byte before: where a function ends with a call that never returns, the address itself
        // may lie in the next module.
        let call = process.code.locate(&mut self.writer, header.address.wrapping_sub(1));
        let return_to = CodeAddr { module: call.module, addr: call.addr.wrapping_add(1) };
        let context = self.writer.context(parent, return_to, header.aux == 1);
        if !process.define_context(header.context, context) {
            return Err(Refusal::Damaged("a call path with an absurd number"));
        }
        Ok(())
    }

    fn module(&mut self, header: &Header, mut payload: Payload<'_>) -> Result<(), Refusal> {
        let (len, file_offset) = (payload.u64()?, payload.u64()?);
        let path = payload.text();
        let at = self.process_index(header.thread)?;
        let process = &mut self.processes[at];
        let mapping = (header.address, len, file_offset);
        let watched = process.code.map(&mut self.writer, &mut self.elf, mapping, &path);
        let (pid, id) = (process.pid, process.id);
        if let Some(flow) = &mut self.flow {
            flow.sink.code_mapped(id, header.address, len, &path, file_offset);
        }
        let file = path.rsplit('/').next().unwrap_or_default();
        self.activity.libpmem |= is_libpmem(file);
        for site in watched {
            if !self.shared.add_watch_site(pid, site.watch, site.address) {
                let text = "too many places of watched functions; calls of some are not recorded".to_owned();
                self.note(Severity::Warning, text);
                break;
            }
        }
        Ok(())
    }

    fn new_pool(&mut self, header: &Header, mut payload: Payload<'_>) -> Result<(), Refusal> {
        let (device, inode, len) = (payload.u64()?, payload.u64()?, payload.u64()?);
        let path = payload.text();
        let number = WirePool(header.address as u32);
        if header.aux == 1 || self.pools.id(number).is_some() {
            return Ok(());
        }
        let mut file = self.pools.receive(number, &path)?;
        let info = PoolInfo { path, len };
        let id = self.writer.pool(info.clone(), &mut file)?;
        let path = info.path.clone();
        self.pools.add(number, id, info, file);
        self.file_becomes_pool(header, FileKey { device, inode }, &path, id)
    }

    fn message(&mut self, header: &Header, payload: Payload<'_>) -> Result<(), Refusal> {
        let text = payload.text();
        let severity = match header.aux {
            0 => Severity::Note,
            1 => Severity::Warning,
            2 => return Err(HostError::Refused(text).into()),
            _ => return Err(HostError::Internal(text).into()),
        };
        self.note(severity, text);
        Ok(())
    }

    pub(super) fn note(&mut self, severity: Severity, text: String) {
        let note = Note { severity, text };
        if !self.notes.contains(&note) {
            self.writer.note(severity, &note.text);
            self.notes.push(note);
        }
    }

    /// Tells whoever waits for it that everything up to here has been taken. Requests may come out of order.
    fn answer(&self, number: u32) {
        let answered = &self.shared.control().answered;
        let before = answered.load(Ordering::Relaxed);
        if number.wrapping_sub(before) as i32 > 0 {
            answered.store(number, Ordering::SeqCst);
        }
        futex_wake(answered);
    }
}
