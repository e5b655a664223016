//! `identity` writes the files for `listen`, and prints the fingerprint for `connect`.

use std::fs;

use crate::process::{Rexmit, run, scratch};

#[test]
fn a_server_that_keeps_its_identity_is_known_by_its_fingerprint() {
    let directory = scratch("identity");
    // Left by an earlier run.
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let files = format!("--cert {} --key {}", path("cert.pem"), path("key.pem"));
    let fingerprint = run(&format!("identity {files}")).text();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path("key.pem")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let kept = fs::read(path("key.pem")).unwrap();
    let again = run(&format!("identity {files} --json")).text();
    assert!(again.contains(fingerprint.trim()), "{again}");
    assert_eq!(fs::read(path("key.pem")).unwrap(), kept, "nothing is overwritten");

    for (pinned, known) in [(fingerprint.trim().to_owned(), true), ("00".repeat(32), false)] {
        let (listener, address) = Rexmit::listen_idle(&format!("listen 127.0.0.1:0 {files}"));
        let connect = format!("connect {address} --fingerprint {pinned}");
        let ended = Rexmit::start(connect.split_whitespace(), b"hello\n".to_vec()).end();
        assert_eq!(ended.status.success(), known, "{ended:?}");
        if known {
            assert_eq!(listener.end().text(), "hello\n");
        }
    }

    fs::remove_file(path("cert.pem")).unwrap();
    run(&format!("identity {files}")).assert_failed(5, "cert.pem is not: name other files");
    let files = format!("--cert {} --key {}", path("none/cert.pem"), path("none/key.pem"));
    run(&format!("identity {files}")).assert_failed(5, "make its directory first");
}
