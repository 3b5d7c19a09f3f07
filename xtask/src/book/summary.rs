//! The side bar: `docs/SUMMARY.md`, in the form that mdBook reads, too. Headings are parts, list items pages.

use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::links::{Link, relative};
use super::page::{OPTIONS, escaped, place};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummaryEntry {
    Part(String),
    /// A page, and how deep in lists it stands: 1 is the outermost.
    Page {
        title: String,
        file: PathBuf,
        depth: usize,
    },
}

/// `file` is the summary's own path from the root.
pub fn entries(file: &Path, text: &str) -> Vec<SummaryEntry> {
    let mut entries = Vec::new();
    let mut depth = 0;
    let mut said = String::new();
    for event in Parser::new_ext(text, OPTIONS) {
        match event {
            Event::Start(Tag::List(_)) => depth += 1,
            Event::End(TagEnd::List(_)) => depth -= 1,
            Event::Start(Tag::Heading { .. }) => said.clear(),
            Event::End(TagEnd::Heading(_)) => entries.push(SummaryEntry::Part(said.clone())),
            Event::Start(Tag::Link { dest_url, .. }) => {
                said.clear();
                if let Some(link) = Link::new(file, &dest_url) {
                    entries.push(SummaryEntry::Page { title: String::new(), file: link.target, depth });
                }
            }
            Event::End(TagEnd::Link) => {
                if let Some(SummaryEntry::Page { title, .. }) = entries.last_mut() {
                    title.clone_from(&said);
                }
            }
            Event::Text(text) | Event::Code(text) => said.push_str(&text),
            _ => {}
        }
    }
    entries
}

/// The side bar of a page.
pub fn side_bar(entries: &[SummaryEntry], page: &Path) -> String {
    let mut text = String::new();
    let mut open = 0;
    for entry in entries {
        let wanted = if let SummaryEntry::Page { depth, .. } = entry { *depth } else { 0 };
        while open > wanted {
            text.push_str("</ul>\n");
            open -= 1;
        }
        while open < wanted {
            text.push_str("<ul>\n");
            open += 1;
        }
        match entry {
            SummaryEntry::Part(title) => text.push_str(&format!("<h2>{}</h2>\n", escaped(title))),
            SummaryEntry::Page { title, file, .. } => {
                let current = if file == page { " aria-current=\"page\"" } else { "" };
                let way = relative(page, &place(file));
                text.push_str(&format!("<li><a href=\"{way}\"{current}>{}</a>\n", escaped(title)));
            }
        }
    }
    text.push_str(&"</ul>\n".repeat(open));
    text
}
