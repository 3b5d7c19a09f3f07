//! One self-contained HTML file: no network, no other file, works from `file://`.
//!
//! ```text
//!   run        what was checked and how far, kept beside the bundles      ─┐
//!   overview   the verdict, in words                                       ├─► page ──► page/*.html (askama)
//!   section    a finding: words, source, stacks                            │             style.css, script/*.js
//!   campaign   of `fuzz`: what was covered when                             │
//!   bytes      the difference of two images                               ─┘
//! ```
//!
//! All text is escaped by the templates; what reaches them as HTML has been through [`escape`].

mod bytes;
pub mod campaign;
mod date;
mod escape;
mod overview;
pub mod page;
mod rule;
pub mod run;
mod section;
