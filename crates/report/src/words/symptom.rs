//! How a failure shows.

use verdict::end::Limit;
use verdict::position::CrashPosition;
use verdict::symptom::{Answer, AtCrash, Complaint, Failure, HalfDone, OperationName, Party, Symptom, Trees};

use crate::number::counted;

/// Answers that are named.
const ANSWERS: usize = 4;
/// Characters of an answer that are shown.
const LONGEST: usize = 120;
/// Of those the equal ones before the first difference.
const LEAD: usize = 20;

/// A sentence without its full stop.
pub fn symptom(symptom: &Symptom) -> String {
    match symptom {
        Symptom::Failed { by, how } => format!("{} {}", party(*by), failure(how)),
        Symptom::OperationFailed { operation, how, crash } => {
            let (operation, at) = (named(operation), at_crash(crash));
            format!("recovery succeeded, but in {operation} the program {} ({at})", failure(how))
        }
        Symptom::FailedAtEnd { how, crash } => format!(
            "recovery succeeded, and every operation after it returned what was expected, but then the program {} ({})",
            failure(how),
            at_crash(crash)
        ),
        Symptom::WrongAnswer { operation, got, expected, crash } => {
            let operation = operation.as_ref().map_or_else(|| "a later operation".to_owned(), named);
            let at = at_crash(crash);
            let (got, expected) = answers(got, expected);
            format!("recovery succeeded, but {operation} returned {got}; expected {expected} ({at})")
        }
        Symptom::OtherOrder { operation, crash } => {
            let operation = operation.as_ref().map_or_else(|| "a query".to_owned(), named);
            let at = at_crash(crash);
            format!(
                "recovery succeeded, but {operation} returned what it should in another order; if that is right, say so with \
                 `order = \"any\"` under [readback] in the grammar or with --readback-order any ({at})"
            )
        }
        Symptom::MixedAnswers { half_done: Some(HalfDone { operation, undone, done }), .. } => {
            let name = |one: &Option<OperationName>| one.as_ref().map_or_else(|| "a later one".to_owned(), named);
            format!(
                "recovery succeeded, but {} is half done: {} returned what it would without it, {} what it would after it",
                named(operation),
                name(undone),
                name(done)
            )
        }
        Symptom::MixedAnswers { crash, .. } => {
            format!("recovery succeeded, but no order of the operations explains all answers ({})", at_crash(crash))
        }
        Symptom::WrongOutput { crash } => {
            let at = crash.as_ref().map_or_else(String::new, |crash| format!(" ({})", at_crash(crash)));
            format!("recovery succeeded, but the operations after it returned what no run without a crash returns{at}")
        }
        Symptom::FileSystemFailed { operation, returned, how } => {
            format!("after a crash {} `{operation}`, the daemon {}", when(*returned), failure(how))
        }
        Symptom::NoTree { operation, returned } => format!(
            "after a crash {} `{operation}`, the file system was mounted, but its tree is not known",
            when(*returned)
        ),
        Symptom::WrongTree { text, .. } => text.clone(),
    }
}

/// A wrong tree, if that is what shows: what differs of it before the operation, after it, and after the crash.
pub fn trees(symptom: &Symptom) -> Vec<(&'static str, String)> {
    let Symptom::WrongTree { trees: Trees { before, after, found, same }, .. } = symptom else { return Vec::new() };
    let entries = |entries: &[String]| match entries {
        [] => "nothing".to_owned(),
        some => some.iter().map(|entry| shortened(entry)).collect::<Vec<_>>().join("\n"),
    };
    let known = !(before.is_empty() && after.is_empty() && found.is_empty());
    let mut all = vec![("before", entries(before)), ("after", entries(after)), ("found", entries(found))];
    if *same > 0 {
        all.push(("else", format!("{}, the same in all three", counted(*same, "other name"))));
    }
    all.into_iter().filter(|_| known).collect()
}

/// Contents that nobody wrote as a whole can be long.
fn shortened(entry: &str) -> String {
    const LONGEST_ENTRY: usize = 240;
    match entry.char_indices().nth(LONGEST_ENTRY) {
        Some((end, _)) => format!("{}…", &entry[..end]),
        None => entry.to_owned(),
    }
}

fn when(returned: bool) -> &'static str {
    if returned { "after" } else { "during" }
}

fn party(party: Party) -> &'static str {
    match party {
        Party::Recovery => "recovery",
        Party::Checker => "checker",
        Party::RecoveryOrOperation => "recovery, or an operation after it,",
    }
}

fn failure(failure: &Failure) -> String {
    let quoted = |complaint: &Complaint| complaint.text.clone();
    match failure {
        Failure::Hang { after_ms } => {
            format!("was not done after {:.1} s (--timeout)", *after_ms as f64 / 1000.0)
        }
        Failure::OverLimit { limit } => match limit {
            Limit::Cpu => "used more processor time than it may",
            Limit::Memory => "used more memory than it may (--memory)",
            Limit::Output => "wrote more output than it may",
            Limit::Processes => "started more processes than it may (--processes)",
        }
        .to_owned(),
        Failure::Output { line } => format!("printed: {}", quoted(line)),
        Failure::Signal { signal, place } => {
            let name = signal_name(*signal);
            match place {
                None => format!("was killed by {name}"),
                Some(place) => {
                    let at = format!("{}+{:#x}", place.module, place.address);
                    match &place.function {
                        Some(function) => format!("was killed by {name} in {function} ({at})"),
                        None => format!("was killed by {name} in {at}"),
                    }
                }
            }
        }
        Failure::Exit { code, complaint: Some(complaint) } => {
            format!("ended with exit code {code}: {}", quoted(complaint))
        }
        Failure::Exit { code, complaint: None } => format!("ended with exit code {code}"),
    }
}

/// `operation 17 (i 5 9)`, or a query of the readback.
fn named(operation: &OperationName) -> String {
    match operation.number {
        Some(number) => format!("operation {number} (`{}`)", operation.text),
        None => format!("`{}`", operation.text),
    }
}

fn at_crash(crash: &AtCrash) -> String {
    let operation = crash.operation.as_ref().map_or_else(|| "an operation".to_owned(), named);
    match crash.position {
        CrashPosition::Before => "the crash came before the first operation".to_owned(),
        CrashPosition::During(_) if crash.window => {
            format!("the crash came during {operation}, any part of which may have happened, in any order")
        }
        CrashPosition::During(_) => format!("the crash came during {operation}, which may have happened or not"),
        CrashPosition::After(_) => format!("the crash came after {operation}, which had been answered"),
    }
}

/// What was answered and what could have been. Of long answers that begin alike the part that differs.
fn answers(got: &Answer, expected: &[Answer]) -> (String, String) {
    let skipped = expected.iter().map(|other| equal_beginning(got, other)).min().unwrap_or(0);
    let mut others: Vec<String> = expected.iter().take(ANSWERS).map(|answer| shown(answer, skipped)).collect();
    if expected.len() > ANSWERS {
        others.push("something else".to_owned());
    }
    (shown(got, skipped), others.join(" or "))
}

/// Characters that two answers have in common at their beginning.
fn equal_beginning(one: &Answer, other: &Answer) -> usize {
    match (one, other) {
        (Some(one), Some(other)) => one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count(),
        _ => 0,
    }
}

/// An answer on one line, and not too long; `equal` characters are the same in the others.
fn shown(answer: &Answer, equal: usize) -> String {
    let Some(answer) = answer else { return "no answer".to_owned() };
    let text = answer.replace('\n', " / ");
    if text.is_empty() {
        return "nothing".to_owned();
    }
    let length = text.chars().count();
    if length <= LONGEST {
        return format!("`{text}`");
    }
    // A line's end has become three characters.
    let ends = answer.chars().take(equal).filter(|&c| c == '\n').count();
    let start = (equal + 2 * ends).saturating_sub(LEAD).min(length - LONGEST);
    let part: String = text.chars().skip(start).take(LONGEST).collect();
    let (before, after) = (if start > 0 { "…" } else { "" }, if start + LONGEST < length { "…" } else { "" });
    format!("`{before}{part}{after}`")
}

/// signal(7); numbers of x86-64.
fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    let known = usize::try_from(signal).ok().and_then(|number| NAMES.get(number.wrapping_sub(1)));
    known.map_or_else(|| format!("signal {signal}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use verdict::symptom::CodePlace;

    use super::*;

    fn operation(number: u64, text: &str) -> OperationName {
        OperationName { number: Some(number), text: text.to_owned(), word: "get".to_owned() }
    }

    fn during(number: u64) -> AtCrash {
        AtCrash {
            position: CrashPosition::During(number as usize),
            operation: Some(operation(number, "i 5 9")),
            window: false,
        }
    }

    #[test]
    fn names_of_signals() {
        let names = [(1, "SIGHUP"), (7, "SIGBUS"), (11, "SIGSEGV"), (31, "SIGSYS"), (0, "signal 0"), (40, "signal 40")];
        names.iter().for_each(|&(number, name)| assert_eq!(signal_name(number), name));
    }

    #[test]
    fn a_signal_has_its_place() {
        let place = CodePlace { module: "kv".into(), address: 0x1234, function: Some("lookup".into()) };
        let how = Failure::Signal { signal: 11, place: Some(place) };
        let told = symptom(&Symptom::Failed { by: Party::Recovery, how: how.clone() });
        assert_eq!(told, "recovery was killed by SIGSEGV in lookup (kv+0x1234)");
        let told = symptom(&Symptom::Failed { by: Party::RecoveryOrOperation, how });
        assert_eq!(told, "recovery, or an operation after it, was killed by SIGSEGV in lookup (kv+0x1234)");
    }

    #[test]
    fn an_answer_stands_beside_what_was_expected() {
        let told = symptom(&Symptom::WrongAnswer {
            operation: Some(operation(15, "g 5")),
            got: Some("7".to_owned()),
            expected: vec![Some("9".to_owned()), Some(String::new()), None],
            crash: during(14),
        });
        assert_eq!(
            told,
            "recovery succeeded, but operation 15 (`g 5`) returned `7`; expected `9` or nothing or no answer \
             (the crash came during operation 14 (`i 5 9`), which may have happened or not)"
        );
    }

    #[test]
    fn of_long_answers_the_difference_is_shown() {
        let long = |end: &str| Some(format!("{}{end}{}", "a\n".repeat(100), "z".repeat(200)));
        let (got, expected) = answers(&long("one"), &[long("two")]);
        assert!(got.contains("one") && expected.contains("two"), "{got} {expected}");
        assert!(got.starts_with("`…") && got.ends_with("…`") && got.chars().count() <= LONGEST + 4);
        assert_eq!(answers(&Some("x\ny".into()), &[None]).0, "`x / y`");
    }
}
