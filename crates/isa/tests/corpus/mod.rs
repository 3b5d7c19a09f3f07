//! One instruction for each `Code` of the decoder that 64-bit code can reach: with memory and with registers, with
//! and without `lock`, `rep` and opmask.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind};
use isa::scan::{Class, scan};
use std::collections::BTreeMap;

/// What tells members of the corpus apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub code: u32,
    pub memory: bool,
    pub lock: bool,
    pub repeats: bool,
    pub masked: bool,
}

pub struct Member {
    pub bytes: Vec<u8>,
    pub instruction: Instruction,
}

#[derive(Default)]
pub struct Corpus {
    pub members: BTreeMap<Kind, Member>,
}

impl Corpus {
    pub fn new() -> Corpus {
        let mut corpus = Corpus::default();
        corpus.legacy();
        corpus.vex();
        corpus.evex();
        let codes: std::collections::BTreeSet<_> = corpus.members.keys().map(|kind| kind.code).collect();
        assert!(codes.len() > 3500, "only {} codes of {} reached", codes.len(), Code::values().len());
        corpus
    }

    fn legacy(&mut self) {
        let prefixes: [&[u8]; 8] = [&[], &[0x66], &[0xf3], &[0xf2], &[0x67], &[0xf0], &[0x66, 0xf0], &[0x66, 0xf3]];
        for escape in [&[][..], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]] {
            for prefix in prefixes {
                for rex in [&[][..], &[0x48]] {
                    for opcode in 0..=255 {
                        self.each_modrm(&[prefix, rex, escape, &[opcode]].concat(), 0xff);
                    }
                }
            }
        }
    }

    fn vex(&mut self) {
        for map in 1..=3 {
            for opcode in 0..=255 {
                for pp_w_l in [0, 1, 2, 3, 4, 5, 6, 7, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87] {
                    for vvvv in [0x78, 0] {
                        self.each_modrm(&[0xc4, 0xe0 | map, pp_w_l | vvvv, opcode], 0xc7);
                    }
                }
            }
        }
    }

    fn evex(&mut self) {
        for map in [1, 2, 3, 5, 6] {
            for opcode in 0..=255 {
                for pp_w in [0, 1, 2, 3, 0x80, 0x81, 0x82, 0x83] {
                    for vvvv in [0x78, 0] {
                        for length_mask in [0x08, 0x28, 0x48, 0x09, 0x29, 0x49] {
                            self.each_modrm(&[0x62, 0xf0 | map, pp_w | vvvv | 4, length_mask, opcode], 0xc0);
                        }
                    }
                }
            }
        }
    }

    /// Every /digit with memory (`[rax]`, and with an index), and with registers up to `last`.
    fn each_modrm(&mut self, head: &[u8], last: u8) {
        for digit in 0..8 {
            self.add(head, digit << 3);
            self.add(head, digit << 3 | 4);
        }
        for modrm in 0xc0..=last {
            self.add(head, modrm);
        }
    }

    fn add(&mut self, head: &[u8], modrm: u8) {
        // SIB: base rax, index 4 (none, or a vector); then zeros, so that `enter` has level 0.
        let mut bytes = [0; 16];
        bytes[..head.len()].copy_from_slice(head);
        bytes[head.len()] = modrm;
        bytes[head.len() + 1] = 0x20;
        if scan(&bytes).is_some_and(|scan| scan.class == Class::Unknown) {
            return;
        }
        let instruction = Decoder::new(64, &bytes[..15], DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return;
        }
        let kind = Kind {
            code: instruction.code() as u32,
            memory: (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory),
            lock: instruction.has_lock_prefix(),
            repeats: instruction.has_rep_prefix() || instruction.has_repne_prefix(),
            masked: instruction.has_op_mask(),
        };
        let bytes = bytes[..instruction.len()].to_vec();
        self.members.entry(kind).or_insert(Member { bytes, instruction });
    }
}
