//! Every format of a report: golden texts, words, and the HTML page in a browser.

#[path = "../html/mod.rs"]
mod html;
#[path = "../sarif_schema/mod.rs"]
mod sarif_schema;

mod golden;
mod words;
