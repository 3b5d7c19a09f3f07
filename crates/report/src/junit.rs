//! JUnit XML, as CI servers read it: a finding is a test that fails, or, if it does not fail the command, one that was skipped.
//!
//! No standard describes the format; this keeps to what the schemas of Jenkins, GitLab and Ant have in common, without times.

use std::fmt::Write;
use std::path::Path;

use finding::finding::Finding;

use crate::baseline::Baseline;
use crate::human::Human;
use crate::place::Places;
use crate::words;

/// What the document says beside the findings.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Where fencepost was started: paths inside it are relative to it.
    pub folder: &'a Path,
    pub recorded_in: &'a Path,
    /// Which findings fail the command.
    pub fails: &'a dyn Fn(&Finding) -> bool,
    pub baseline: Option<&'a Baseline>,
    /// Remarks on the run as a whole.
    pub notes: &'a [String],
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("folder", &self.folder).field("notes", &self.notes).finish_non_exhaustive()
    }
}

/// The document. `human` renders what is shown of each finding, and must not colour.
pub fn document(findings: &[Finding], run: &Run<'_>, human: &mut Human) -> String {
    let Run { folder, recorded_in, fails, baseline, notes } = *run;
    let places = Places::new(folder, recorded_in);
    let knows = |finding: &Finding| baseline.is_some_and(|baseline| baseline.knows(finding));
    let failures = findings.iter().filter(|finding| fails(finding)).count();
    let skipped = findings.len() - failures;
    let mut cases = String::new();
    if failures == 0 {
        // A suite without a test that passed counts as an error in some servers.
        cases.push_str("    <testcase classname=\"fencepost\" name=\"no failing findings\"/>\n");
    }
    for finding in findings {
        let skipped = match (fails(finding), knows(finding)) {
            (true, _) => None,
            (false, true) => Some("known (baseline)".to_owned()),
            (false, false) => Some(format!("{}: does not fail the command", finding.severity)),
        };
        case(&mut cases, finding, &places, skipped.as_deref(), &human.finding(finding));
    }
    if !notes.is_empty() {
        writeln!(cases, "    <system-out>{}</system-out>", escaped(&notes.join("\n"))).expect("a string takes all");
    }
    let tests = findings.len() + usize::from(failures == 0);
    let counts = format!("name=\"fencepost\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\"");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  \
         <testsuite {counts} skipped=\"{skipped}\">\n{cases}  </testsuite>\n</testsuites>"
    )
}

/// `skipped` says why it does not fail the command, if it does not.
fn case(into: &mut String, finding: &Finding, places: &Places, skipped: Option<&str>, shown: &str) {
    let guilty = finding.guilty();
    let title = words::title(finding);
    let mut attributes = format!(
        "classname=\"fencepost.{}\" name=\"{}\"",
        escaped(&finding.rule),
        escaped(&format!("{title} [{}]", finding.id)),
    );
    if let (Some(file), Some(line)) = (&guilty.file, guilty.line) {
        write!(attributes, " file=\"{}\" line=\"{line}\"", escaped(&places.path(file))).expect("a string takes all");
    }
    let title = escaped(&title);
    let text = escaped(shown);
    let inside = match skipped {
        None => format!("<failure type=\"{}\" message=\"{title}\">{text}</failure>", escaped(&finding.rule)),
        Some(why) => {
            format!("<skipped message=\"{}\"/>\n      <system-out>{text}</system-out>", escaped(why))
        }
    };
    writeln!(into, "    <testcase {attributes}>\n      {inside}\n    </testcase>").expect("a string takes all");
}

/// For text and for attributes in double quotes. What XML 1.0 (§2.2) cannot hold in any form becomes U+FFFD.
fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            // `]]>` may not stand in text.
            '>' => result.push_str("&gt;"),
            '"' => result.push_str("&quot;"),
            // Readers turn it into a line's end otherwise (§2.11).
            '\r' => result.push_str("&#13;"),
            '\t' | '\n' => result.push(character),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => result.push('\u{fffd}'),
            other => result.push(other),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(escaped("a<b && \"c\" ]]> 'd'"), "a&lt;b &amp;&amp; &quot;c&quot; ]]&gt; 'd'");
    }

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(escaped("\u{1b}[1m\0x\u{ffff}\r\n\té"), "\u{fffd}[1m\u{fffd}x\u{fffd}&#13;\n\té");
    }
}
