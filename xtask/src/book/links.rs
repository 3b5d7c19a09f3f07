//! What pages link to.

use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Parser, Tag};

use super::page::OPTIONS;

/// A link inside the repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// From the root of the repository.
    pub target: PathBuf,
    /// The heading, if one is meant.
    pub anchor: Option<String>,
}

impl Link {
    /// None: it leads out of the repository.
    pub fn new(page: &Path, written: &str) -> Option<Link> {
        if written.contains("://") || written.starts_with("mailto:") {
            return None;
        }
        let (path, anchor) = match written.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor.to_owned())),
            None => (written, None),
        };
        let folder = page.parent().unwrap_or(Path::new(""));
        let target = if path.is_empty() { page.to_owned() } else { normal(&folder.join(path)) };
        Some(Link { target, anchor })
    }
}

/// The links of a page, images included.
pub fn links(page: &Path, text: &str) -> Vec<Link> {
    let written = Parser::new_ext(text, OPTIONS).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
        _ => None,
    });
    written.filter_map(|written| Link::new(page, &written)).collect()
}

/// Without `.` and `..`, by name only.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// The way from a page to a file, both from the root.
pub fn relative(page: &Path, target: &Path) -> String {
    let from: Vec<Component<'_>> = page.parent().unwrap_or(Path::new("")).components().collect();
    let to: Vec<Component<'_>> = target.components().collect();
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - common);
    let down = to[common..].iter().map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}
