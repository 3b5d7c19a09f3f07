//! Records about files that are no pools, and about names.

use trace::event::{EventKind, FileEvent, PoolId, ThreadId};
use wire::record::{Header, kind};

use super::payload::Payload;
use super::translate::{Refusal, Translator};
use crate::file_book::{Change, FileKey, NameChange};

impl Translator<'_> {
    pub(super) fn file_change(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Refusal> {
        let thread = ThreadId(header.thread.into());
        match header.kind {
            kind::FILE_BEFORE => {
                let mut payload = Payload(bytes);
                let len = payload.u32()? as usize;
                let cut = || Refusal::Damaged("a path that is cut");
                let (path, other) = payload.0.split_at_checked(len).ok_or_else(cut)?;
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let step = NameChange { op: header.aux, path: text(path), other: text(other) };
                self.book.before(&mut self.writer, thread, step)?;
                Ok(())
            }
            kind::FILE_AFTER => {
                let changes = self.book.after(&mut self.writer, thread);
                self.push_changes(header, &changes)
            }
            _ => self.content_change(header, Payload(bytes)),
        }
    }

    fn content_change(&mut self, header: &Header, mut payload: Payload<'_>) -> Result<(), Refusal> {
        let key = FileKey { device: payload.u64()?, inode: payload.u64()? };
        let data_only = header.aux == 1;
        if header.kind == kind::FILE_SYNC && key.inode == 0 {
            return self.push(header, EventKind::File(FileEvent::Sync { file: None, data_only }));
        }
        // Nobody names it: no recovery will find it.
        let Some(file) = self.book.find(key) else { return Ok(()) };
        let event = match header.kind {
            kind::FILE_DATA => {
                FileEvent::Write { file, offset: header.address, bytes: payload.0, continues: header.aux == 1 }
            }
            kind::FILE_LEN => FileEvent::Length { file, len: header.address },
            kind::FILE_HOLE => FileEvent::Zero { file, offset: header.address, len: payload.u64()? },
            _ => FileEvent::Sync { file: Some(file), data_only },
        };
        self.push(header, EventKind::File(event))
    }

    fn push_changes(&mut self, header: &Header, changes: &[Change]) -> Result<(), Refusal> {
        changes.iter().try_for_each(|change| self.push(header, EventKind::File(change.event())))
    }

    pub(super) fn file_becomes_pool(
        &mut self,
        header: &Header,
        key: FileKey,
        path: &str,
        pool: PoolId,
    ) -> Result<(), Refusal> {
        let change = self.book.becomes_pool(&mut self.writer, key, path, pool)?;
        self.push_changes(header, change.as_slice())
    }
}
