//! Chromium without a window, driven over its pipe by the DevTools protocol.

use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use testing::{MINUTE, Reason, eventually, skip};

/// The descriptors of the protocol are the program's standard input and output; what it prints goes nowhere.
const START: &str = "exec chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
                     --remote-debugging-pipe --user-data-dir=\"$0\" 3<&0 4>&1 >/dev/null 2>&1";

/// A browser.
pub(super) struct Browser {
    child: Child,
    input: RefCell<ChildStdin>,
    output: RefCell<BufReader<ChildStdout>>,
    next_id: Cell<u64>,
    /// What scripts threw.
    exceptions: RefCell<VecDeque<String>>,
    profile: PathBuf,
}

/// A tab.
pub(super) struct Page<'a> {
    browser: &'a Browser,
    target: String,
    session: String,
}

impl Browser {
    /// Starts it; `None`, and the test is skipped, if this machine has none.
    pub(super) fn start() -> Option<Self> {
        if !Command::new("chromium").arg("--version").output().is_ok_and(|output| output.status.success()) {
            skip(Reason::Missing, "chromium");
            return None;
        }
        let number = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let profile = std::env::temp_dir().join(format!("ropewalk-browser-{}-{number}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", START]).arg(&profile).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (input, output) = (RefCell::new(input), RefCell::new(BufReader::new(output)));
        Some(Self { child, input, output, next_id: Cell::new(0), exceptions: RefCell::default(), profile })
    }

    /// A method's result.
    fn call(&self, session: Option<&str>, method: &str, parameters: &Value) -> Value {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        write!(self.input.borrow_mut(), "{message}\0").unwrap();
        loop {
            let mut bytes = Vec::new();
            self.output.borrow_mut().read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser has ended");
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["method"] == "Runtime.exceptionThrown" {
                self.exceptions.borrow_mut().push_back(answer["params"]["exceptionDetails"].to_string());
            }
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// A new tab, before the others, with nothing in it.
    pub(super) fn page(&self) -> Page<'_> {
        let target = self.call(None, "Target.createTarget", &json!({"url": "about:blank"}));
        let target = target["targetId"].as_str().unwrap().to_owned();
        let session = self.call(None, "Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        let session = session["sessionId"].as_str().unwrap().to_owned();
        let page = Page { browser: self, target, session };
        for domain in ["Page", "Runtime"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        page
    }

    /// What scripts of pages threw.
    pub(super) fn exceptions(&self) -> Vec<String> {
        self.exceptions.borrow().iter().cloned().collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

impl Page<'_> {
    pub(super) fn call(&self, method: &str, parameters: &Value) -> Value {
        self.browser.call(Some(&self.session), method, parameters)
    }

    pub(super) fn open(&self, address: &str) {
        self.call("Page.navigate", &json!({"url": address}));
    }

    pub(super) fn bring_to_front(&self) {
        self.browser.call(None, "Target.activateTarget", &json!({"targetId": self.target}));
    }

    /// Runs a script before those of each page.
    pub(super) fn before(&self, script: &str) {
        self.call("Page.addScriptToEvaluateOnNewDocument", &json!({"source": script}));
    }

    /// An expression's value.
    pub(super) fn value(&self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", &parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// The visible text of what a selector finds.
    pub(super) fn text(&self, selector: &str) -> String {
        self.value(&format!("document.querySelector({selector:?})?.innerText ?? ''")).as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true.
    pub(super) fn wait(&self, expression: &str) {
        // What an expression needs may not be there yet.
        let is_true = || {
            self.value(&format!("(() => {{ try {{ return Boolean({expression}) }} catch {{ return false }} }})()"))
                == true
        };
        let shown = || self.value("document.body?.innerText").to_string();
        assert!(
            eventually(is_true),
            "{expression}: not within {MINUTE:?}\n{}\n{:?}",
            shown(),
            self.browser.exceptions()
        );
    }

    /// Sets the size in pixels, and features of media such as `prefers-color-scheme: dark`.
    pub(super) fn show(&self, width: u32, features: &[(&str, &str)]) {
        let size = json!({"width": width, "height": 1600, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let features: Vec<_> = features.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        self.call("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Leaves a picture in the folder that `ROPEWALK_LOOK` names.
    pub(super) fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("ROPEWALK_LOOK") else { return };
        let result = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        let bytes = decoded(result["data"].as_str().unwrap());
        std::fs::write(PathBuf::from(folder).join(format!("{name}.png")), bytes).unwrap();
    }
}

/// The bytes of a text in base64 (RFC 4648).
fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for value in text.bytes().filter_map(digit) {
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
