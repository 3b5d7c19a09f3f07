//! The pictures of `docs/report.md`: no test, a chore that needs the same browser.
//!
//! ```text
//! fencepost demo
//! FENCEPOST_REPORT=$PWD/fencepost-demo/report.html cargo test -p report --test formats -- --ignored pictures
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::browser::ready;
use super::devtools::Browser;

#[test]
#[ignore = "makes the pictures of the documentation, from the report that FENCEPOST_REPORT names"]
fn pictures() {
    let report = PathBuf::from(std::env::var_os("FENCEPOST_REPORT").expect("FENCEPOST_REPORT names a report"));
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    fs::create_dir_all(&images).unwrap();
    let mut browser = Browser::start();
    let all = [
        ("report", 1180, "light", None),
        ("report-finding", 1180, "light", Some(".finding")),
        ("report-timeline-dark", 1180, "dark", Some(".timeline")),
        ("report-phone", 430, "light", Some(".timeline")),
    ];
    for (name, width, scheme, part) in all {
        let metrics = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
        browser.ask("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.ask("Emulation.setEmulatedMedia", json!({ "features": features }));
        browser.visit(&report);
        if part.is_some() {
            browser.value("document.querySelector('.top').style.position = 'static'");
            browser.value("document.querySelector('.timeline').scrollIntoView({behavior: 'instant'})");
            ready(&mut browser);
        }
        fs::write(images.join(format!("{name}.png")), browser.picture(part)).unwrap();
    }
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}
