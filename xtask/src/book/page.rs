//! One page: Markdown to HTML.

use std::path::{Path, PathBuf};

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::links::{Link, relative};

/// What the files use, and GitHub shows.
pub const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH);

const STYLE: &str = include_str!("style.css");

/// A heading: its text and what links call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    pub level: HeadingLevel,
    pub text: String,
    pub anchor: String,
}

/// The headings of a page, named as GitHub names them.
pub fn headings(text: &str) -> Vec<Heading> {
    let mut found: Vec<Heading> = Vec::new();
    let mut open: Option<(HeadingLevel, String)> = None;
    for event in Parser::new_ext(text, OPTIONS) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => open = Some((level, String::new())),
            Event::Text(text) | Event::Code(text) => {
                if let Some((_, heading)) = &mut open {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let Some((level, text)) = open.take() else { continue };
                let plain = slug(&text);
                let earlier = found.iter().filter(|heading| slug(&heading.text) == plain).count();
                let anchor = if earlier == 0 { plain } else { format!("{plain}-{earlier}") };
                found.push(Heading { level, text, anchor });
            }
            _ => {}
        }
    }
    found
}

fn slug(text: &str) -> String {
    let kept = text.to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Where a file of the repository is in the book.
pub fn place(file: &Path) -> PathBuf {
    if file.extension().is_some_and(|extension| extension == "md") {
        file.with_extension("html")
    } else {
        file.to_owned()
    }
}

/// The whole document. `side` is the side bar; `leads_to` says which file of the book a link means, if any.
pub fn render(page: &Path, text: &str, side: &str, leads_to: &dyn Fn(&Link) -> Option<PathBuf>) -> String {
    let mut anchors = headings(text).into_iter().map(|heading| heading.anchor);
    // A link whose target is not in the book is only text.
    let mut dead = Vec::new();
    let events = Parser::new_ext(text, OPTIONS).filter_map(|event| match event {
        Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
            Some(Event::Start(Tag::Heading { level, id: anchors.next().map(CowStr::from), classes, attrs }))
        }
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => match retarget(page, &dest_url, leads_to) {
            Some(url) => {
                dead.push(false);
                Some(Event::Start(Tag::Link { link_type, dest_url: url.into(), title, id }))
            }
            None => {
                dead.push(true);
                None
            }
        },
        Event::End(TagEnd::Link) if dead.pop() == Some(true) => None,
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            let url = retarget(page, &dest_url, leads_to).map_or(dest_url, CowStr::from);
            Some(Event::Start(Tag::Image { link_type, dest_url: url, title, id }))
        }
        other => Some(other),
    });
    let mut body = String::new();
    html::push_html(&mut body, events);
    let title = headings(text).first().map_or_else(|| "Fencepost".to_owned(), |heading| heading.text.clone());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">Skip to the text</a>\n\
         <nav aria-label=\"Pages\">\n{side}</nav>\n<main id=\"content\">\n{body}</main>\n</body>\n</html>\n",
        escaped(&title)
    )
}

fn retarget(page: &Path, written: &str, leads_to: &dyn Fn(&Link) -> Option<PathBuf>) -> Option<String> {
    let Some(link) = Link::new(page, written) else { return Some(written.to_owned()) };
    let target = leads_to(&link)?;
    let anchor = link.anchor.map_or_else(String::new, |anchor| format!("#{anchor}"));
    Some(format!("{}{anchor}", relative(page, &place(&target))))
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
