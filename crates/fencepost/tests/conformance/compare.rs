//! The first difference between two recordings, told so that one can act on it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use targets::Compare;

use crate::stream::ComparedEvent;

/// How many equal events are shown before the first difference.
const LEAD: usize = 3;

/// None if they agree.
pub fn difference(step: &[ComparedEvent], probe: &[ComparedEvent], compare: Compare) -> Option<String> {
    if compare.unordered {
        return unordered(step, probe);
    }
    if !compare.thread_events_float {
        return ordered(step, probe);
    }
    let boundaries = |all: &[ComparedEvent]| all.iter().filter(|seen| seen.is_thread_boundary).count();
    let (a, b) = (boundaries(step), boundaries(probe));
    if a != b {
        return Some(format!("{a} thread starts and ends under step, {b} under probe"));
    }
    let rest = |all: &[ComparedEvent]| -> Vec<ComparedEvent> {
        all.iter().filter(|seen| !seen.is_thread_boundary).cloned().collect()
    };
    ordered(&rest(step), &rest(probe))
}

fn ordered(step: &[ComparedEvent], probe: &[ComparedEvent]) -> Option<String> {
    let at = (0..step.len().max(probe.len())).find(|&n| step.get(n) != probe.get(n))?;
    let mut text = format!("event {at} of {} (step) and {} (probe) differs\n", step.len(), probe.len());
    for (n, seen) in step.iter().enumerate().take(at).skip(at.saturating_sub(LEAD)) {
        line(&mut text, &format!("  both  {n}"), seen);
    }
    for (name, all) in [("step ", step), ("probe", probe)] {
        match all.get(at) {
            Some(seen) => full(&mut text, &format!("{name} {at}"), seen),
            None => push(&mut text, format_args!("* {name} has no more events")),
        }
        for (n, seen) in all.iter().enumerate().skip(at + 1).take(LEAD) {
            line(&mut text, &format!("  {name} {n}"), seen);
        }
    }
    if let (Some(a), Some(b)) = (step.get(at), probe.get(at)) {
        push(&mut text, format_args!("they differ in: {}", aspects(a, b).join(", ")));
    }
    Some(text)
}

fn aspects(a: &ComparedEvent, b: &ComparedEvent) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (differs, name) in [
        (a.what != b.what, "event"),
        (a.pc != b.pc, "pc"),
        (a.path != b.path, "call path"),
        (a.thread != b.thread, "thread"),
    ] {
        if differs {
            found.push(name);
        }
    }
    found
}

fn unordered(step: &[ComparedEvent], probe: &[ComparedEvent]) -> Option<String> {
    let mut counts: BTreeMap<&ComparedEvent, i64> = BTreeMap::new();
    for seen in step {
        *counts.entry(seen).or_default() += 1;
    }
    for seen in probe {
        *counts.entry(seen).or_default() -= 1;
    }
    let odd: Vec<_> = counts.into_iter().filter(|(_, surplus)| *surplus != 0).collect();
    if odd.is_empty() {
        return None;
    }
    let mut text = format!("{} events (step) and {} (probe); {} kinds differ\n", step.len(), probe.len(), odd.len());
    for (seen, surplus) in odd.iter().take(2 * LEAD) {
        let name = if *surplus > 0 { "step " } else { "probe" };
        full(&mut text, &format!("{name} {} times more", surplus.abs()), seen);
    }
    Some(text)
}

fn line(text: &mut String, label: &str, seen: &ComparedEvent) {
    push(text, format_args!("{label}: {} at {}", shorten(&seen.what), symbol(&seen.pc)));
}

fn full(text: &mut String, label: &str, seen: &ComparedEvent) {
    let thread = seen.thread.map(|n| format!(" thread {n}")).unwrap_or_default();
    push(text, format_args!("* {label}:{thread} {}\n    at {}", shorten(&seen.what), symbol(&seen.pc)));
    for frame in seen.path.iter().rev() {
        push(text, format_args!("    called from {}", symbol(frame)));
    }
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String takes any text");
}

fn shorten(what: &str) -> String {
    match what.char_indices().nth(200) {
        Some((end, _)) => format!("{}… ({} characters)", &what[..end], what.len()),
        None => what.to_owned(),
    }
}

/// The place with its function and line, as far as binutils' `addr2line` knows them.
fn symbol(code: &str) -> String {
    let Some((module, address)) = code.rsplit_once('+') else { return code.to_owned() };
    let known = Command::new("addr2line").args(["-f", "-s", "-C", "-e", module, address]).output().ok();
    let text = known.filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).replace('\n', " "));
    match text {
        Some(text) if !text.starts_with("??") => format!("{code} ({})", text.trim_end()),
        _ => code.to_owned(),
    }
}
