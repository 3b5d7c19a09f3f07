//! Text for HTML.

/// Text as HTML.
pub fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Text as HTML; what stands between backticks is code.
pub fn prose(text: &str) -> String {
    let mut result = String::new();
    let parts: Vec<&str> = text.split('`').collect();
    let last = parts.len() - 1;
    for (number, part) in parts.into_iter().enumerate() {
        match number % 2 {
            // A backtick without another one is itself.
            1 if number == last => result.push_str(&format!("`{}", html(part))),
            1 => result.push_str(&format!("<code>{}</code>", html(part))),
            _ => result.push_str(&html(part)),
        }
    }
    result
}

/// Text as HTML; options of a command are code, and not broken at their hyphens.
pub fn with_flags(text: &str) -> String {
    let marked = text.split(' ').map(|word| {
        let flag = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        match word.split_once(flag).filter(|_| flag.starts_with("--")) {
            Some((before, after)) => {
                format!("{}<code class=\"flag\">{}</code>{}", html(before), html(flag), html(after))
            }
            None => html(word),
        }
    });
    marked.collect::<Vec<String>>().join(" ")
}

/// JSON that can stand in a `script` element: neither `</script>` nor `<!--` may occur in it (HTML §4.12.1.3).
pub fn script_json(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out() {
        assert_eq!(html("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
        assert_eq!(prose("see `a<b>` & `c`"), "see <code>a&lt;b&gt;</code> &amp; <code>c</code>");
        assert_eq!(prose("one ` only"), "one ` only");
        assert_eq!(prose("a `b` c `d"), "a <code>b</code> c `d");
        assert_eq!(with_flags("a <b> (--budget)."), "a &lt;b&gt; (<code class=\"flag\">--budget</code>).");
        assert_eq!(script_json("\"</script><!--\""), "\"\\u003c/script>\\u003c!--\"");
    }
}
