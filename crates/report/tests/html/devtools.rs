//! Drives Chromium by its DevTools protocol, over a pipe: commands go to its descriptor 3, answers come from 4, each a JSON
//! object that ends with a zero byte (chromium: `--remote-debugging-pipe`).

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A browser that hangs is ended, and the test with it.
const SECONDS: &str = "120";
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser with one page.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    sent: u64,
    /// Errors that the page logged or threw.
    pub complaints: Vec<String>,
    loaded: bool,
    folder: TempDir,
}

impl Browser {
    /// # Panics
    /// If there is no Chromium: a report that nobody has opened is not tested.
    pub fn start() -> Browser {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let find = |name: &&str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
        let Some(name) = NAMES.iter().find(|name| find(name)) else {
            panic!(
                "the tests of the HTML report need Chromium, which is not installed: `apt-get install -y chromium` (Debian)"
            );
        };
        let folder = tempfile::tempdir().unwrap();
        let command = format!(
            "exec 3<&0 4>&1 0</dev/null 1>&2; exec timeout -k 1 {SECONDS} {name} --headless=new --no-sandbox --disable-gpu \
             --disable-dev-shm-usage --no-first-run --remote-debugging-pipe --window-size=1280,900 --user-data-dir=\"$1\" about:blank"
        );
        let mut process = Command::new("bash")
            .args(["-c", &command, "bash"])
            .arg(folder.path().join("profile"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, from) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let (sent, complaints, loaded, session) = (0, Vec::new(), false, None);
        let mut browser = Browser { process, to, from, session, sent, complaints, loaded, folder };
        let page = browser.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", attach);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Accessibility"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// A command, and its answer.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.next();
            if answer["id"] == json!(id) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    fn next(&mut self) -> Value {
        let mut text = Vec::new();
        self.from.read_until(0, &mut text).unwrap();
        assert!(text.pop() == Some(0), "the browser has ended");
        let message: Value = serde_json::from_slice(&text).unwrap();
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Page.loadEventFired" => self.loaded = true,
            "Runtime.exceptionThrown" => self.complaints.push(params["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" if params["type"] == "error" => self.complaints.push(params["args"].to_string()),
            "Log.entryAdded" if params["entry"]["level"] == "error" => {
                self.complaints.push(params["entry"].to_string())
            }
            _ => {}
        }
        message
    }

    /// Opens a report from `file://`.
    pub fn open(&mut self, page: &str) {
        let path = self.folder.path().join("report.html");
        fs::write(&path, page).unwrap();
        self.visit(&path);
    }

    /// Opens a file.
    pub fn visit(&mut self, path: &Path) {
        self.loaded = false;
        self.ask("Page.navigate", json!({ "url": format!("file://{}", path.display()) }));
        while !self.loaded {
            self.next();
        }
    }

    /// The value of a JavaScript expression; promises are waited for.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.ask("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits for the next two frames: what a click led to is drawn then.
    pub fn settle(&mut self) {
        self.value("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))");
    }

    /// A picture of an element, or of the whole window.
    pub fn picture(&mut self, selector: Option<&str>) -> Vec<u8> {
        let mut params = json!({ "format": "png" });
        if let Some(selector) = selector {
            let place = self.value(&format!(
                "(() => {{ const r = document.querySelector({selector:?}).getBoundingClientRect(); \
                 return [r.x + scrollX - 12, r.y + scrollY - 12, r.width + 24, r.height + 24]; }})()"
            ));
            params["captureBeyondViewport"] = json!(true);
            params["clip"] = json!({ "x": place[0], "y": place[1], "width": place[2], "height": place[3], "scale": 1 });
        }
        let picture = self.ask("Page.captureScreenshot", params);
        base64(picture["data"].as_str().unwrap())
    }

    /// A real click in the middle of an element.
    pub fn click(&mut self, selector: &str) {
        let place = self.value(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let params =
                json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "buttons": 1, "clickCount": 1 });
            self.ask("Input.dispatchMouseEvent", params);
        }
        self.settle();
    }

    /// A real key: `Tab`, `ArrowRight`, …
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let text = if key.chars().count() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let params = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.ask("Input.dispatchKeyEvent", params);
        }
        self.settle();
    }
}

/// What the protocol has for bytes (RFC 4648 §4).
fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|&c| c != b'=').map(value).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for four in digits.chunks(4) {
        let bits = four.iter().enumerate().fold(0u32, |bits, (at, digit)| bits | u32::from(*digit) << (18 - 6 * at));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends its own processes; killing `timeout` would leave them.
        let close = format!("{}\0", json!({ "id": 0, "method": "Browser.close" }));
        if self.to.write_all(close.as_bytes()).is_err() {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}
