//! qvis (<https://github.com/quiclog/qvis>) in headless Chromium, served from this process.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::Value;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Collects what qvis reports as an error: in the console, by exceptions, and by the alerts with which it rejects files.
const WATCH: &str = "<script>window.told = []; const tell = (...all) => told.push(all.join(' ')); \
    console.error = tell; window.alert = tell; \
    addEventListener('error', (event) => tell('error', event.message)); \
    addEventListener('unhandledrejection', (event) => tell('rejected', event.reason));</script>";

/// Waits until the view has drawn, and writes what it shows into the document.
const LOOK: &str = r##"<script>
const drawn = () => {
  const canvas = document.querySelector("#mainGraphContainer canvas");
  if (!canvas) return 0;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 3; at < data.length; at += 4) count += data[at] > 0 && data[at - 3] + data[at - 2] + data[at - 1] < 700;
  return count;
};
const labels = () => [...document.querySelectorAll("svg foreignObject span")].map((label) => label.textContent.trim());
let rounds = 0;
const look = setInterval(() => {
  const found = { told, drawn: drawn(), labels: labels().slice(0, 2000) };
  if (++rounds < 40 && !told.length && found.drawn === 0 && !found.labels.some((label) => label.startsWith("ack"))) return;
  clearInterval(look);
  const out = document.createElement("pre");
  out.id = "selftest";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
}, 250);
</script>"##;

/// A built qvis and a browser.
pub(crate) struct Qvis {
    folder: PathBuf,
    browser: &'static str,
}

impl Qvis {
    /// The qvis that `scripts/qvis` builds, or in the directory `REXMIT_QVIS`; `None` where it or a browser is missing.
    pub(crate) fn find() -> Option<Self> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("tools/qvis");
        let folder = std::env::var_os("REXMIT_QVIS").map_or(target, PathBuf::from);
        if !folder.join("index.html").is_file() {
            rexmit_testkit::not_run(
                "qvis is not there (it is on no package registry; scripts/qvis builds it)",
            );
            return None;
        }
        let runs = |browser: &&str| {
            let mut probe = Command::new(browser);
            probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            probe.status().is_ok_and(|status| status.success())
        };
        let browser = BROWSERS.into_iter().find(runs);
        if browser.is_none() {
            rexmit_testkit::not_run("chromium is not installed (apt-get install chromium)");
        }
        Some(Self { folder, browser: browser? })
    }

    /// Opens `file` in the views for congestion and sequences: neither reports an error, and both draw its packets.
    pub(crate) fn check(&self, file: &Path) {
        let address = self.serve(std::fs::read(file).unwrap());
        let congestion = self.look(address, "congestion");
        assert_eq!(congestion["told"], serde_json::json!([]));
        assert!(congestion["drawn"].as_u64().unwrap() > 500, "{congestion}");
        let sequence = self.look(address, "sequence");
        assert_eq!(sequence["told"], serde_json::json!([]));
        let labels: Vec<&str> =
            sequence["labels"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for expected in ["data", "ack ", "sctp : "] {
            assert!(
                labels.iter().any(|label| label.contains(expected)),
                "no {expected} in {labels:?}"
            );
        }
    }

    /// Opens a view, and returns the labels and errors in it.
    fn look(&self, address: SocketAddr, view: &str) -> Value {
        let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("qvis-{view}"));
        let output = Command::new(self.browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-sync",
            ])
            .args(["--disable-background-networking", "--disable-component-update"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(["--window-size=1400,1700", "--virtual-time-budget=30000", "--dump-dom"])
            .arg(format!("http://{address}/index.html?file=run.sqlog#/{view}"))
            .output()
            .unwrap();
        let _ = std::fs::remove_dir_all(profile);
        let document = String::from_utf8_lossy(&output.stdout).into_owned();
        let (_, rest) =
            document.split_once("<pre id=\"selftest\">").unwrap_or_else(|| panic!("{document}"));
        let (found, _) = rest.split_once("</pre>").unwrap();
        let found = found.replace("&gt;", ">").replace("&lt;", "<").replace("&nbsp;", "\u{a0}");
        serde_json::from_str(&found.replace("&amp;", "&")).unwrap()
    }

    /// Serves qvis, and `log` as `run.sqlog`, until the test's process ends.
    fn serve(&self, log: Vec<u8>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (folder, log) = (self.folder.clone(), Arc::new(log));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (folder, log) = (folder.clone(), Arc::clone(&log));
                std::thread::spawn(move || answer(stream, &folder, &log));
            }
        });
        address
    }
}

fn answer(mut stream: TcpStream, folder: &Path, log: &[u8]) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = stream.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        head.extend(&piece[..length]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().trim_start_matches('/');
    let (kind, body) = match path {
        "run.sqlog" => ("application/qlog+json-seq", Some(log.to_vec())),
        "index.html" => {
            let page = std::fs::read_to_string(folder.join(path))?;
            let page = page.replacen("<body>", &format!("<body>{WATCH}"), 1);
            ("text/html", Some(page.replacen("</body>", &format!("{LOOK}</body>"), 1).into_bytes()))
        }
        _ if path.contains("..") => ("text/plain", None),
        _ => {
            let kind = if path.ends_with(".css") { "text/css" } else { "text/javascript" };
            (kind, std::fs::read(folder.join(path)).ok())
        }
    };
    let (status, body) = body.map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body));
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)
}
