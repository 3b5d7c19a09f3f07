//! Input that goes through sockets and pipes from one process to another. The connection is not known: received data is found by its content
//! among the data that was sent and not received yet. A wrong match costs one run that takes another path than predicted.

use std::collections::VecDeque;

use crate::frame::Byte;

/// Messages that are remembered; older ones went to somebody who is not followed.
const MOST: usize = 256;

/// What was sent, in order.
#[derive(Debug, Default)]
pub struct Channels {
    sent: VecDeque<Message>,
}

#[derive(Debug)]
struct Message {
    content: Vec<u8>,
    bytes: Vec<Byte>,
}

impl Channels {
    /// `bytes` are what is followed of the content.
    pub fn send(&mut self, content: &[u8], bytes: Vec<Byte>) {
        if bytes.iter().all(Option::is_none) {
            return;
        }
        if self.sent.len() == MOST {
            self.sent.pop_front();
        }
        self.sent.push_back(Message { content: content.to_vec(), bytes });
    }

    /// What is followed of this content; as long as it.
    pub fn receive(&mut self, content: &[u8]) -> Vec<Byte> {
        let mut bytes = Vec::new();
        while bytes.len() < content.len() {
            let rest = &content[bytes.len()..];
            let fits = |message: &Message| {
                let both = message.content.len().min(rest.len());
                message.content[..both] == rest[..both]
            };
            let Some(at) = self.sent.iter().position(fits) else { break };
            let message = &mut self.sent[at];
            let len = message.content.len().min(rest.len());
            bytes.extend(message.bytes.drain(..len));
            message.content.drain(..len);
            if message.content.is_empty() {
                self.sent.remove(at);
            }
        }
        bytes.resize(content.len(), None);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Arena;

    #[test]
    fn what_was_sent_is_found_in_pieces_and_in_one() {
        let mut arena = Arena::of(b"abcd");
        let input: Vec<Byte> = (0..4).map(|at| Some(arena.input(at))).collect();
        let mut channels = Channels::default();
        channels.send(b"put ab\n", [&[None; 4][..], &input[..2], &[None]].concat());
        channels.send(b"get cd\n", [&[None; 4][..], &input[2..], &[None]].concat());
        assert_eq!(channels.receive(b"OK\n"), [None; 3]);
        assert_eq!(channels.receive(b"put a"), [None, None, None, None, input[0]]);
        let both = channels.receive(b"b\nget cd\nmore");
        assert_eq!(both[..2], [input[1], None]);
        assert_eq!(both[2..], [&[None; 4][..], &input[2..], &[None; 5]].concat());
        assert!(channels.sent.is_empty());
    }
}
