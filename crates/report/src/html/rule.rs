//! The explanation pages of rules as HTML.

use pulldown_cmark::{Event, Parser, Tag, TagEnd, html};

/// A page without its first heading, which the report says itself. Headings are two levels deeper than in the file.
pub fn page(markdown: &str) -> String {
    let mut in_title = false;
    let events = Parser::new(markdown).filter_map(|event| {
        match &event {
            Event::Start(Tag::Heading { level, .. }) if *level as u8 == 1 => in_title = true,
            Event::End(TagEnd::Heading(level)) if *level as u8 == 1 => {
                in_title = false;
                return None;
            }
            _ => {}
        }
        // Pages are Fencepost's own, but a custom rule's may be anybody's.
        let raw = matches!(event, Event::Html(_) | Event::InlineHtml(_));
        (!in_title && !raw).then_some(event)
    });
    let mut text = String::new();
    html::push_html(&mut text, events);
    text.replace("<h2>", "<h4>").replace("</h2>", "</h4>").replace("<pre>", "<pre tabindex=\"0\">")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_lose_their_title_and_raw_html() {
        let text = page("# FP1: x\n\nA *b* <script>alert(1)</script>\n\n## Bad\n```c\na < b\n```\n");
        assert_eq!(
            text,
            "<p>A <em>b</em> alert(1)</p>\n<h4>Bad</h4>\n<pre tabindex=\"0\"><code class=\"language-c\">a &lt; b\n</code></pre>\n"
        );
    }
}
