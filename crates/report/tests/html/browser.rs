//! What readers of a report do, in Chromium: look, filter, move the crash, use the keyboard alone, prefer the dark.

use serde_json::{Value, json};

use super::devtools::Browser;
use super::sample::{everything, evidence, finding, html, large, location, run};
use finding::finding::{Class, Role};
use finding::severity::Severity;
use report::html::run::Run;

fn opened() -> Browser {
    let (run, evidence) = everything();
    let mut browser = Browser::start();
    browser.open(&html(&run, &evidence));
    browser.value("document.querySelector('.timeline').scrollIntoView({behavior: 'instant'})");
    ready(&mut browser);
    browser
}

/// Until the first time line is there.
pub fn ready(browser: &mut Browser) {
    browser.value(
        "new Promise(done => { const look = () => document.querySelector('.timeline').dataset.ready ? done(1) : requestAnimationFrame(look); look(); })",
    );
    browser.settle();
}

fn shown(browser: &mut Browser) -> Vec<String> {
    let ids = browser.value(
        "[...document.querySelectorAll('.finding')].filter(f => f.offsetParent !== null).map(f => f.dataset.id)",
    );
    ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

fn lanes(browser: &mut Browser) -> Vec<String> {
    let states = browser.value("[...document.querySelectorAll('.states tbody tr')].map(row => row.dataset.state)");
    states.as_array().unwrap().iter().map(|state| state.as_str().unwrap().to_owned()).collect()
}

fn fine(browser: &Browser) {
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

#[test]
fn it_opens_and_nothing_of_a_name_is_run() {
    let mut browser = opened();
    assert_eq!(browser.value("window.broken === undefined"), json!(true));
    assert!(browser.text("document.title").contains("Fencepost"));
    assert_eq!(browser.value("document.querySelectorAll('h1').length"), json!(1));
    let words = browser.text("document.querySelector('.cut').textContent");
    assert!(words.contains("1,234 earlier events") && words.contains("2 more lines"), "{words}");
    // Something is drawn: not every pixel is the same.
    let drawn = "(() => { const c = document.querySelector('canvas'); const d = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer); return new Set(d).size; })()";
    assert!(browser.value(drawn).as_u64().unwrap() > 5);
    // The page does not scroll sideways, on a telephone neither.
    for width in [1280, 390] {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        browser.ask("Emulation.setDeviceMetricsOverride", metrics);
        browser.settle();
        let wide = browser.value("document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(wide <= width, "{wide} of {width}");
    }
    fine(&browser);
}

#[test]
fn filters_hide_and_show() {
    let mut browser = opened();
    assert_eq!(shown(&mut browser), ["11111111", "22222222", "33333333"]);
    browser.click("[data-filter=severity][data-key=performance]");
    assert_eq!(shown(&mut browser), ["22222222"]);
    browser.click("[data-filter=severity][data-key=warning]");
    assert_eq!(shown(&mut browser), ["22222222", "33333333"]);
    browser.click("[data-filter=class][data-key=custom]");
    assert_eq!(shown(&mut browser), ["33333333"]);
    assert_eq!(browser.text("document.getElementById('shown').textContent"), "1 of 3 shown");
    browser.click("#clear");
    assert_eq!(shown(&mut browser).len(), 3);
    // The field has the focus now; `/` leads there from elsewhere.
    browser.value("document.activeElement.blur()");
    browser.press("/");
    for key in "flush_all".chars() {
        browser.press(&key.to_string());
    }
    assert_eq!(shown(&mut browser), ["22222222"]);
    browser.value("(() => { const t = document.getElementById('text'); t.value = 'no such thing'; t.dispatchEvent(new Event('input')); })()");
    assert_eq!(browser.value("document.getElementById('nothing').hidden"), json!(false));
    // A link to a hidden finding brings it back.
    browser.value("location.hash = '#f-11111111'");
    browser.settle();
    assert_eq!(shown(&mut browser).len(), 3);
    browser.value("(() => { const r = document.getElementById('rule'); r.value = 'FP0602'; r.dispatchEvent(new Event('change')); })()");
    assert_eq!(shown(&mut browser), ["11111111"]);
    fine(&browser);
}

#[test]
fn the_slider_moves_the_crash() {
    let mut browser = opened();
    let slider = "document.querySelector('input[type=range]')";
    assert_eq!(lanes(&mut browser), ["dirty", "flushed"]);
    assert!(browser.text("document.querySelector('.where').textContent").contains("Where it failed"));
    let fates = "[...document.querySelectorAll('.states .write')].map(w => w.className).join(' | ')";
    let at_crash = browser.text(fates);
    assert!(at_crash.contains("lost") && at_crash.contains("there"), "{at_crash}");
    browser.value(&format!("{slider}.focus({{preventScroll: false}})"));
    browser.press("ArrowRight");
    assert_eq!(lanes(&mut browser), ["flushed", "flushed"]);
    browser.press("ArrowRight");
    assert_eq!(lanes(&mut browser), ["sure", "sure"]);
    let spoken = browser.text(&format!("{slider}.getAttribute('aria-valuetext')"));
    assert_eq!(spoken, "at the end of the window");
    browser.press("Home");
    assert_eq!(lanes(&mut browser), ["idle", "idle"]);
    assert!(!browser.text(fates).contains("lost"));
    browser.click(".step[data-step='1']");
    browser.click(".step[data-step='1']");
    assert_eq!(lanes(&mut browser), ["dirty", "idle"]);
    browser.click(".home");
    assert_eq!(lanes(&mut browser), ["dirty", "flushed"]);
    // A click into the lanes, and one into the list of events, do the same.
    browser.click("canvas");
    assert_ne!(browser.value(&format!("{slider}.value")), json!("4"));
    browser.click(".events summary");
    browser.click(".row:nth-child(6)");
    assert_eq!(lanes(&mut browser), ["sure", "sure"]);
    assert!(browser.text("document.querySelector('.stack').textContent").contains("event 14"));
    browser.press("ArrowUp");
    fine(&browser);
}

#[test]
fn light_and_dark() {
    let mut browser = opened();
    let ground = "getComputedStyle(document.body).backgroundColor";
    let light = browser.text(ground);
    browser.click("#theme");
    let dark = browser.text(ground);
    assert_ne!(light, dark);
    assert_eq!(browser.text("document.getElementById('theme').getAttribute('aria-pressed')"), "true");
    browser.click("#theme");
    assert_eq!(browser.text(ground), light);
    browser.value("(() => { localStorage.clear(); delete document.documentElement.dataset.theme; })()");
    let features = json!([{ "name": "prefers-color-scheme", "value": "dark" }]);
    browser.ask("Emulation.setEmulatedMedia", json!({ "features": features }));
    browser.settle();
    assert_eq!(browser.text(ground), dark);
    fine(&browser);
}

#[test]
fn the_keyboard_is_enough() {
    let (run, evidence) = everything();
    let mut browser = Browser::start();
    browser.open(&html(&run, &evidence));
    let mut order = Vec::new();
    let focused = "(() => { const e = document.activeElement; return e === document.body ? '' : (e.id || e.className || e.tagName) })()";
    for _ in 0..60 {
        browser.press("Tab");
        let here = browser.text(focused);
        if here.is_empty() && !order.is_empty() {
            break;
        }
        let visible = browser.value(
            "(() => { const e = document.activeElement, s = getComputedStyle(e); return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2; })()",
        );
        assert_eq!(visible, json!(true), "{here} has the focus, and nobody sees it");
        order.push(here);
    }
    let place =
        |name: &str| order.iter().position(|known| known.contains(name)).unwrap_or_else(|| panic!("{name}: {order:?}"));
    let wanted = ["skip", "brand", "theme", "text", "chip", "rule", "s-11111111", "copy"].map(place);
    assert!(wanted.is_sorted(), "{order:?}");
    assert_eq!(wanted[0], 0);
    fine(&browser);
}

#[test]
fn who_cannot_see_it_is_told() {
    let mut browser = opened();
    let tree = browser.ask("Accessibility.getFullAXTree", json!({}));
    let nodes: Vec<&Value> =
        tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] == json!(false)).collect();
    let name = |node: &Value| node["name"]["value"].as_str().unwrap_or_default().to_owned();
    for role in ["main", "navigation", "banner", "search"] {
        assert!(nodes.iter().any(|node| node["role"]["value"] == role), "no landmark {role}");
    }
    for role in ["button", "link", "slider", "searchbox", "combobox", "region", "article"] {
        let nameless = nodes.iter().filter(|node| node["role"]["value"] == role && name(node).is_empty()).count();
        assert_eq!(nameless, 0, "{role} without a name");
    }
    let twice = "(() => { const ids = [...document.querySelectorAll('[id]')].map(e => e.id); return ids.filter((id, at) => ids.indexOf(id) !== at); })()";
    assert_eq!(browser.value(twice), json!([]));
    let nowhere = "[...document.querySelectorAll('[for], [aria-labelledby], a[href^=\"#\"]')].map(e => e.htmlFor || e.getAttribute('aria-labelledby') || e.getAttribute('href').slice(1)).filter(id => !document.getElementById(id))";
    assert_eq!(browser.value(nowhere), json!([]));
    assert!(nodes.iter().any(|node| node["role"]["value"] == "slider" && name(node) == "If power failed…"));
    fine(&browser);
}

#[test]
fn many_findings_are_folded_and_listed_on_a_telephone() {
    let (all, evidence) = everything();
    let misuse = |number: u32| {
        let at = location(Role::Flush, number, "flush_all");
        finding(&format!("{number:08}"), "FP0201", Class::Performance, Severity::Performance, vec![at])
    };
    let run = Run { others: (100..130).map(misuse).collect(), ..all };
    let mut browser = Browser::start();
    for width in [390, 1280] {
        let metrics = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
        browser.ask("Emulation.setDeviceMetricsOverride", metrics);
        browser.open(&html(&run, &evidence));
        browser.settle();
        let open = browser.value("document.querySelectorAll('.fold[open]').length");
        assert_eq!(open, json!(2), "{width}");
        // From wherever the reader is, the list is one touch away, and from there each finding.
        browser.value("document.querySelector('.top a[href=\"#index\"]').click()");
        let listed =
            browser.value("[...document.querySelectorAll('.index a')].filter(a => a.offsetParent !== null).length");
        assert_eq!(listed.as_u64().unwrap() as usize, run.others.len() + evidence.len(), "{width}");
        browser.value("document.querySelector('.index a[href=\"#f-00000129\"]').click()");
        browser.value("new Promise(done => setTimeout(() => done(1), 50))");
        assert_eq!(browser.value("document.querySelector('#f-00000129 .fold').open"), json!(true), "{width}");
        // A label stands beneath its line of code.
        let over = "[...document.querySelectorAll('.src')].filter(cell => { const label = cell.querySelector('.label'), code = cell.querySelector('pre'); return label && code.getBoundingClientRect().height > 0 && label.getBoundingClientRect().top < code.getBoundingClientRect().bottom - 1; }).length";
        assert_eq!(browser.value(over), json!(0), "{width}");
        assert!(browser.value("document.querySelectorAll('.src .label').length").as_u64() > Some(0));
        let wide = browser.value("document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(wide <= width, "{wide} of {width}");
        // For people to look at.
        if let Some(folder) = std::env::var_os("FENCEPOST_PICTURES") {
            let picture = browser.picture(None);
            std::fs::write(std::path::Path::new(&folder).join(format!("many-{width}.png")), picture).unwrap();
            browser.value("document.querySelector('.top a[href=\"#index\"]').click()");
            browser.settle();
            let picture = browser.picture(Some(".code"));
            std::fs::write(std::path::Path::new(&folder).join(format!("code-{width}.png")), picture).unwrap();
        }
    }
    fine(&browser);
}

#[test]
fn many_events_and_findings_are_no_burden() {
    let evidence = [evidence("11111111", large(20_000))];
    let misuse = |number: u32| {
        let at = location(Role::Flush, number, "flush_all");
        finding(&format!("{number:08}"), "FP0201", Class::Performance, Severity::Performance, vec![at])
    };
    let run = Run { others: (0..400).map(misuse).collect(), ..run() };
    let mut browser = Browser::start();
    browser.open(&html(&run, &evidence));
    browser.value("document.querySelector('.timeline').scrollIntoView({behavior: 'instant'})");
    ready(&mut browser);
    browser.click(".more");
    browser.click(".events summary");
    // What exists does not grow with the events: only what is in view does.
    let rows = browser.value("document.querySelectorAll('.row').length").as_u64().unwrap();
    assert!((5..60).contains(&rows), "{rows} rows");
    let pixels = browser.value("document.querySelector('canvas').width").as_u64().unwrap();
    assert!(pixels < 4000, "{pixels}");
    // 200 moves over the whole window; the time limit of the browser is the limit.
    let moves = "(async () => { const s = document.querySelector('input[type=range]'); for (let i = 0; i < 200; i++) { s.value = i * 100; s.dispatchEvent(new Event('input')); if (i % 20 === 0) await new Promise(r => requestAnimationFrame(r)); } return Number(s.value); })()";
    assert_eq!(browser.value(moves), json!(19900));
    assert_eq!(lanes(&mut browser).len(), 64);
    fine(&browser);
}

#[test]
fn a_clean_report_opens_too() {
    let mut browser = Browser::start();
    browser.open(&html(&run(), &[]));
    assert!(browser.text("document.querySelector('h1').textContent").contains("survives"));
    assert!(browser.text("document.body.innerText").contains("What was not"));
    fine(&browser);
}
