//! HTTP between our TCP and unmodified programs.

mod common;
// The functions of the example are tested as they are.
#[allow(dead_code)]
#[path = "../examples/http.rs"]
mod http;

use std::io::{Read, Write};
use std::net::IpAddr;
use std::process::Stdio;

use common::in_time;
use common::site::{Site, in_thread, with_time_limit};
use common::tshark::Directory;
use rexmit::tcp::ConnectionConfig;
use rexmit_core::Seed;

fn file_contents() -> Vec<u8> {
    let mut bytes = vec![0; 3_000_000];
    Seed::from_u64(80).rng().fill(&mut bytes);
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_fetches_a_file_from_our_server() {
    let Some(site) = Site::direct(ConnectionConfig::default()) else { return };
    if std::process::Command::new("curl").arg("--version").output().is_err() {
        rexmit_testkit::not_run("`curl` is not installed (package curl)");
        return;
    }
    let directory = Directory::new();
    std::fs::write(directory.path("file"), file_contents()).unwrap();
    std::fs::write(directory.path("other"), "the directory is served").unwrap();
    let listener = site.stack.listen(80).unwrap();
    tokio::spawn(http::serve(listener, directory.path("")));

    let curl = |address: IpAddr, path: &'static str| {
        let mut command = site.kernel.command("curl");
        let host = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
        command.args(["--silent", "--show-error", "--fail", "--max-time", "50", "--path-as-is"]);
        command.arg(format!("http://{host}/{path}")).stdin(Stdio::null());
        in_thread(move || command.output().unwrap())
    };
    for address in site.ours {
        let output = in_time(curl(address, "file")).await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == file_contents(), "what arrived is something else");
    }
    for missing in ["nothing", "../other", "./../../etc/passwd"] {
        let output = in_time(curl(site.ours[0], missing)).await.unwrap();
        assert!(!output.status.success(), "{missing}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("404") || error.contains("400"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_fetches_a_file_from_a_server_on_the_kernel() {
    let Some(site) = Site::direct(ConnectionConfig::default()) else { return };
    for theirs in site.theirs {
        let (listener, address) = site.kernel_listener(theirs);
        let serving = in_thread(move || {
            let mut stream = with_time_limit(listener.accept().unwrap().0);
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").unwrap();
            stream.write_all(&file_contents()).unwrap();
            String::from_utf8(request).unwrap()
        });
        let body = in_time(http::get(&site.stack, address, "/file")).await.unwrap();
        assert!(body == file_contents(), "what arrived is something else");
        let request = in_time(serving).await.unwrap();
        assert!(request.starts_with("GET /file HTTP/1.1\r\n"), "{request}");
    }
}
