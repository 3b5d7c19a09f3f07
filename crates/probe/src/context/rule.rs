//! How to get from a frame to its caller at a given pc: the `.eh_frame` row, reduced to what call paths need.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, NativeEndian, Operation, RegisterRule, UnwindContext, UnwindSection,
    X86_64,
};

use crate::load::modules;
use crate::lock::{Guard, LockName, Locked};
use crate::map::U64Map;

/// The caller's frame starts at CFA = (rsp or rbp) + `cfa_offset`; its return address is at CFA − 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnwindRule {
    pub cfa_rbp: bool,
    pub cfa_offset: i32,
    /// CFA is the word found at (register + offset) instead (realigned stacks).
    pub deref: bool,
    /// The caller's rbp is saved at CFA + this; 0: unchanged.
    pub rbp_offset: i32,
    /// There is no caller (the return address is undefined): the outermost frame.
    pub outermost: bool,
    /// A signal frame: paths end here.
    pub signal: bool,
}

/// Rules that were looked up.
#[derive(Debug)]
pub struct Rules {
    known: U64Map<Option<UnwindRule>>,
    /// How often everything was forgotten: a rule that was looked up before is not to be kept.
    forgotten: u32,
}

static RULES: Locked<Rules> = Locked::new(LockName::UnwindRules, Rules { known: U64Map::new(), forgotten: 0 });

/// Holds the rules, for fork.
pub fn hold() -> Guard<'static, Rules> {
    RULES.lock()
}

/// The rule at `pc`. `exact`: pc is an instruction about to run; else it is a return address (the call lies before it).
pub fn at(pc: u64, exact: bool) -> Option<UnwindRule> {
    let pc = if exact { pc } else { pc - 1 };
    let forgotten = {
        let rules = RULES.lock();
        if let Some(rule) = rules.known.get(pc) {
            return rule;
        }
        rules.forgotten
    };
    let rule = parse(pc);
    crate::translate::hints::unwound(pc);
    let mut rules = RULES.lock();
    if rules.forgotten == forgotten {
        rules.known.insert(pc, rule);
    }
    rule
}

/// Code went away: rules of old addresses mean nothing any more.
pub fn forget() {
    let mut rules = RULES.lock();
    rules.known.clear();
    rules.forgotten = rules.forgotten.wrapping_add(1);
}

fn parse(pc: u64) -> Option<UnwindRule> {
    let (module, frames, pc) = modules::frames_for(pc)?;
    let mut context = UnwindContext::new();
    let (frame, bases, fde);
    if module.eh_frame_hdr == 0 {
        frame = EhFrame::new(frames.from(module.frames_start)?, NativeEndian);
        bases = BaseAddresses::default().set_eh_frame(module.frames_start);
        fde = frame.fde_for_address(&bases, pc, |s, b, o| s.cie_from_offset(b, o)).ok()?;
    } else {
        let hdr_base = BaseAddresses::default().set_eh_frame_hdr(module.eh_frame_hdr);
        let header = EhFrameHdr::new(frames.from(module.eh_frame_hdr)?, NativeEndian).parse(&hdr_base, 8).ok()?;
        let frame_at = match header.eh_frame_ptr() {
            gimli::Pointer::Direct(address) => address,
            gimli::Pointer::Indirect(_) => return None,
        };
        if frame_at < module.frames_start || frame_at >= module.frames_end {
            return None;
        }
        frame = EhFrame::new(frames.from(frame_at)?, NativeEndian);
        bases = hdr_base.set_eh_frame(frame_at);
        fde = header.table()?.fde_for_address(&frame, &bases, pc, |s, b, o| s.cie_from_offset(b, o)).ok()?;
    }
    if !fde.contains(pc) {
        return None;
    }
    let signal = fde.is_signal_trampoline();
    let row = fde.unwind_info_for_address(&frame, &bases, &mut context, pc).ok()?;
    let mut rule = UnwindRule { signal, ..UnwindRule::default() };
    match row.register(X86_64::RA) {
        RegisterRule::Offset(-8) => {}
        RegisterRule::Undefined => {
            rule.outermost = true;
            return Some(rule);
        }
        _ if signal => return Some(rule),
        _ => return None,
    }
    match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            match *register {
                X86_64::RSP => {}
                X86_64::RBP => rule.cfa_rbp = true,
                _ => return None,
            }
            rule.cfa_offset = i32::try_from(*offset).ok()?;
        }
        CfaRule::Expression(expression) => {
            let expression = expression.get(&frame).ok()?;
            let mut operations = expression.operations(fde.cie().encoding());
            match operations.next().ok()?? {
                Operation::RegisterOffset { register, offset, .. } => {
                    match register {
                        X86_64::RSP => {}
                        X86_64::RBP => rule.cfa_rbp = true,
                        _ => return None,
                    }
                    rule.cfa_offset = i32::try_from(offset).ok()?;
                    match operations.next().ok()? {
                        Some(Operation::Deref { .. }) => {
                            if operations.next().ok()?.is_some() {
                                return None;
                            }
                            rule.deref = true;
                        }
                        None => {}
                        // The PLT's row: rsp + 8 + ((rip & 15) >= 11) << 3. Stubs make no PM access.
                        Some(_) => return None,
                    }
                }
                _ => return None,
            }
        }
    }
    rule.rbp_offset = match row.register(X86_64::RBP) {
        RegisterRule::Undefined | RegisterRule::SameValue => 0,
        RegisterRule::Offset(offset) => i32::try_from(offset).ok()?,
        _ if rule.deref => 0,
        _ => return None,
    };
    Some(rule)
}
