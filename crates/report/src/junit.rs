//! JUnit XML, as CI servers read it: a finding is a test that fails, or, if it does not fail the command, one that was skipped.
//!
//! No standard describes the format; this keeps to what the schemas of Jenkins, GitLab and Ant have in common, without times.

use std::fmt::Write;

use finding::finding::Finding;

use crate::human::Human;
use crate::words;

/// The document. `fails` says which findings fail the command; `notes` are remarks on the run as a whole; `human` renders what is
/// shown of each finding, and must not colour.
pub fn document(findings: &[Finding], fails: &dyn Fn(&Finding) -> bool, notes: &[String], human: &mut Human) -> String {
    let failures = findings.iter().filter(|finding| fails(finding)).count();
    let skipped = findings.len() - failures;
    let mut cases = String::new();
    if failures == 0 {
        // A suite without a test that passed counts as an error in some servers.
        cases.push_str("    <testcase classname=\"fencepost\" name=\"no failing findings\"/>\n");
    }
    for finding in findings {
        case(&mut cases, finding, fails(finding), &human.finding(finding));
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

fn case(into: &mut String, finding: &Finding, fails: bool, shown: &str) {
    let guilty = finding.guilty();
    let title = words::title(finding);
    let mut attributes = format!(
        "classname=\"fencepost.{}\" name=\"{}\"",
        escaped(&finding.rule),
        escaped(&format!("{title} [{}]", finding.id)),
    );
    if let (Some(file), Some(line)) = (&guilty.file, guilty.line) {
        write!(attributes, " file=\"{}\" line=\"{line}\"", escaped(file)).expect("a string takes all");
    }
    let title = escaped(&title);
    let text = escaped(shown);
    let inside = if fails {
        format!("<failure type=\"{}\" message=\"{title}\">{text}</failure>", escaped(&finding.rule))
    } else {
        format!(
            "<skipped message=\"{}: does not fail the command\"/>\n      <system-out>{text}</system-out>",
            finding.severity
        )
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
