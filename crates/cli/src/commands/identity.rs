//! `rexmit identity`.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use rexmit::Identity;
use serde::Serialize;

use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::Format;

/// Make a certificate and its key for a server that keeps them, and print its fingerprint.
///
/// If both files are there, only the fingerprint is printed; nothing is overwritten. Clients give the fingerprint to
/// --fingerprint, the server the files to --cert and --key. With the key, another host can impersonate the server.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit identity
  rexmit listen 0.0.0.0:9899 --cert cert.pem --key key.pem > received   # and on another machine:
  rexmit connect 192.0.2.1:9899 --fingerprint $FINGERPRINT < file"))]
pub(crate) struct Arguments {
    /// The file of the certificate, in PEM.
    #[arg(long = "cert", value_name = "FILE", default_value = "cert.pem")]
    certificate: PathBuf,
    /// The file of the private key, in PEM; only its owner can read it.
    #[arg(long, value_name = "FILE", default_value = "key.pem")]
    key: PathBuf,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Made {
    fingerprint: String,
    certificate: PathBuf,
    key: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { certificate, key, format } = arguments;
    let identity = match (certificate.exists(), key.exists()) {
        (false, false) => make(certificate, key)?,
        (true, true) => Identity::from_pem(&read(certificate)?, &read(key)?).map_err(|error| {
            let files = format!("{} and {}", certificate.display(), key.display());
            Failure::new(Kind::File, format!("{files}: {error}"))
        })?,
        (has_certificate, _) => {
            let (one, other) =
                if has_certificate { (certificate, key) } else { (key, certificate) };
            let message = format!(
                "{} is there and {} is not: name other files by --cert and --key",
                one.display(),
                other.display()
            );
            return Err(Failure::new(Kind::File, message));
        }
    };
    let made = Made {
        fingerprint: identity.fingerprint().to_string(),
        certificate: certificate.clone(),
        key: key.clone(),
    };
    format.print(&made, |made| format!("{}\n", made.fingerprint))
}

fn make(certificate: &Path, key: &Path) -> Result<Identity, Failure> {
    let identity = Identity::generate().map_err(|error| Failure::new(Kind::Failed, error))?;
    write(key, &identity.private_key_pem(), true)?;
    write(certificate, &identity.certificate_pem(), false).inspect_err(|_| {
        // A key without a certificate would prevent the next attempt.
        let _ = fs::remove_file(key);
    })?;
    Ok(identity)
}

/// Writes a new file; an existing one is an error.
fn write(file: &Path, text: &str, is_secret: bool) -> Outcome {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_secret {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let written = options.open(file).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| refused(file, &error))
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| refused(file, &error))
}

fn refused(file: &Path, error: &std::io::Error) -> Failure {
    let advice = match error.kind() {
        ErrorKind::NotFound => ": make its directory first",
        _ => "",
    };
    Failure::new(Kind::File, format!("{}: {error}{advice}", file.display()))
}
