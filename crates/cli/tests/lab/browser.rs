//! The page in headless Chromium, with a script in it that uses it as a reader would.
//!
//! Between browser and server is a relay, which adds the script to the page and takes what it found. Nothing else is changed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Answer, Server};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// A limit that no page reaches, even on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(240);

/// A browser with its own directory; both are removed when this value is dropped.
struct Browser {
    child: Child,
    folder: PathBuf,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|browser| {
        let mut probe = Command::new(browser);
        let probe = probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        probe.is_ok_and(|status| status.success())
    })
}

/// Opens the page of `server` with `fragment`, in a frame `width` pixels wide, and returns what the script posts;
/// `None` if there is no browser. It uses a frame, because the least width of a window is larger than that of a phone.
fn self_test(server: &Server, name: &str, fragment: &str, width: u32) -> Option<Value> {
    let Some(browser) = browser() else {
        rexmit_testkit::not_run("chromium is not installed (apt-get install chromium)");
        return None;
    };
    let (relay, found) = relay(server.address, width);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    let child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-background-timer-throttling", "--disable-renderer-backgrounding"])
        .args(["--disable-dev-shm-usage", "--window-size=1400,1700", "--remote-debugging-port=0"])
        .arg(format!("--user-data-dir={}", folder.display()))
        .arg(format!("http://{relay}/frame{fragment}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _browser = Browser { child, folder };
    Some(found.recv_timeout(TIME_LIMIT).expect("the script has posted what it found"))
}

/// Starts a relay to `server`, and returns its address, and what scripts post.
fn relay(server: SocketAddr, width: u32) -> (SocketAddr, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (post, found) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let post = post.clone();
            std::thread::spawn(move || relay_one(stream, server, width, &post));
        }
    });
    (address, found)
}

/// Relays one request; errors mean that the browser has closed the connection.
fn relay_one(
    mut stream: TcpStream,
    server: SocketAddr,
    width: u32,
    post: &Sender<Value>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&count| count > 0)?;
        let lower = line.to_ascii_lowercase();
        length = lower
            .strip_prefix("content-length:")
            .map_or(Some(length), |it| it.trim().parse().ok())?;
        match &line[..] {
            "\r\n" => break,
            _ if lower.starts_with("connection:") => head += "Connection: close\r\n",
            _ => head += &line,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if head.starts_with("GET /frame") {
        // The fragment goes on to the page itself.
        let frame = format!(
            "<!doctype html><body><script>const frame = document.createElement('iframe'); \
            frame.width = {width}; frame.height = 1600; frame.src = '/' + location.hash; document.body.append(frame);</script>"
        );
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n";
        return stream.write_all(format!("{head}{frame}").as_bytes()).ok();
    }
    if head.starts_with("POST /found") {
        post.send(serde_json::from_slice(&body).unwrap()).ok()?;
        return stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").ok();
    }
    let mut upstream = TcpStream::connect(server).ok()?;
    upstream.write_all(format!("{head}\r\n").as_bytes()).ok()?;
    upstream.write_all(&body).ok()?;
    if head.starts_with("GET / ") {
        let page = with_script(&Answer::read(&mut upstream).body);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n";
        return stream.write_all(format!("{head}{page}").as_bytes()).ok();
    }
    // A page that gives up closes its connection, and the server is to see that.
    let (ours, theirs) = (upstream.try_clone().ok()?, stream.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = (&theirs).read(&mut [0]);
        let _ = ours.shutdown(std::net::Shutdown::Both);
    });
    std::io::copy(&mut upstream, &mut stream).ok()?;
    stream.shutdown(std::net::Shutdown::Both).ok()
}

/// The page with a script that collects its errors before its own scripts, and the test after them.
fn with_script(page: &str) -> String {
    let watch = "<body><script>window.selftestErrors = []; \
        addEventListener('error', (event) => selftestErrors.push(event.message)); \
        addEventListener('unhandledrejection', (event) => selftestErrors.push('rejected: ' + event.reason)); \
        console.error = (...told) => selftestErrors.push('console: ' + told.join(' ')); \
        addEventListener('securitypolicyviolation', (event) => selftestErrors.push('request: ' + event.blockedURI)); \
        </script>";
    let test = format!("<script>{}</script></body>", include_str!("selftest.js"));
    page.replacen("<body>", watch, 1).replacen("</body>", &test, 1)
}

const FRAGMENT: &str = "#interval_ms=40&duration_s=30&seeds=2&systems=rfc9260%2Cinteractive";

#[test]
fn the_page_answers_sliders_and_keeps_its_settings_in_files_and_its_address() {
    let server = Server::start();
    let Some(found) = self_test(&server, "lab-wide", FRAGMENT, 1200) else { return };
    assert_eq!(found["errors"], json!([]), "{found}");
    assert_eq!(found["first"]["rows"], json!(["rfc9260", "interactive"]), "{found}");
    assert_eq!(found["first"]["loss"], "5");
    assert!(found["first"]["ink"].as_u64().is_some_and(|count| count > 200), "{found}");
    assert_eq!(found["first"]["curves"], 4, "two systems and two bounds");

    // The slider moves up one step by the keyboard's event, and the figures follow.
    assert_eq!(found["moved"]["loss"], "6");
    assert_eq!(found["moved"]["spoken"], "6 %");
    assert!(found["moved"]["address"].as_str().unwrap().contains("loss_percent=6"), "{found}");
    assert_ne!(found["moved"]["table"], found["first"]["table"]);
    let was_kept = &found["stayed"];
    assert_eq!(was_kept["busy"], "true", "{found}");
    assert_eq!(was_kept["table"], found["first"]["table"], "the last answer stays until the next");
    // The way back gives the same figures: nothing but the settings decides them.
    assert_eq!(found["back"]["table"], found["first"]["table"]);

    // The saved file is the one that the server makes of these settings.
    let settings = json!({
        "rhythm": "every", "interval_ms": 40, "size": 100, "ordered": false, "rtt_ms": 100, "jitter_ms": 0,
        "loss_percent": 5, "burst_ms": 0, "rate_kbit": 0, "queue": 100, "duration_s": 30, "seeds": 2,
        "systems": ["rfc9260", "interactive"],
    });
    assert_eq!(found["saved"]["name"], "lab.toml");
    assert_eq!(found["saved"]["text"], server.post("/file", &settings).body);
    // Loaded again after other settings, it gives the same figures.
    assert_ne!(found["other"]["table"], found["first"]["table"]);
    assert_eq!(found["loaded"]["table"], found["first"]["table"]);
    assert_eq!(found["loaded"]["address"], found["back"]["address"]);

    assert!(found["refused"]["problem"].as_str().unwrap().contains("not TOML"), "{found}");
    assert_eq!(found["refused"]["table"], found["first"]["table"]);
    assert!(found["beyond"]["problem"].as_str().unwrap().contains("Loss is 99 %"), "{found}");
    assert_eq!(found["recovered"]["problem"], "");
    assert_eq!(found["units"], json!(["unlimited", "kbit/s", "unlimited"]));
    let explained = found["explained"].as_array().unwrap();
    assert!(explained.contains(&json!("interactive")), "each profile has a line: {found}");
    assert_eq!(
        found["ordered"]["offered"],
        json!([false, true]),
        "systems that deliver in order only"
    );
    assert_eq!(found["unlabelled"], json!([]), "every control has a name");
    assert!(found["overflow"].as_i64().is_some_and(|pixels| pixels <= 0), "{found}");
}

#[test]
fn a_narrow_window_needs_no_sideways_scrolling() {
    let server = Server::start();
    let Some(found) = self_test(&server, "lab-narrow", FRAGMENT, 390) else { return };
    assert_eq!(found["errors"], json!([]), "{found}");
    assert!(found["overflow"].as_i64().is_some_and(|pixels| pixels <= 0), "{found}");
    assert!(found["first"]["ink"].as_u64().is_some_and(|count| count > 100), "{found}");
}
