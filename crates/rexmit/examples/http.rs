//! A small HTTP server and client on our TCP, over a TUN device (as root):
//!
//! ```text
//! cargo run --release -p rexmit --example http -- serve DIRECTORY
//! curl http://10.91.0.2/FILE
//!
//! cargo run --release -p rexmit --example http -- get http://10.91.0.1:8000/FILE
//! ```
//!
//! The device's other end, 10.91.0.1, is the kernel of this machine; we are 10.91.0.2. It implements as much of
//! HTTP/1.1 (RFC 9112) as one file per connection needs.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use rexmit::tcp::{Stack, StackConfig, TcpListener, TcpStream};
use rexmit::tun::{AsyncTun, Tun, TunConfig};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// The most bytes of a request line or of a header line, and of all lines together.
const MAX_HEAD_BYTES: u64 = 16 * 1024;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("http: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, argument] = &arguments[..] else {
        return Err("usage: http serve DIRECTORY | http get URL".into());
    };
    let config = TunConfig::default().ipv4(Some(("10.91.0.1".parse()?, 24)));
    let tun = AsyncTun::new(Tun::open(&config)?)?;
    let stack = Stack::new(tun, ["10.91.0.2".parse()?], StackConfig::default())?;
    match command.as_str() {
        "serve" => {
            eprintln!("serving {argument} at http://10.91.0.2/");
            serve(stack.listen(80)?, argument.into()).await;
        }
        "get" => {
            let (address, path) = parse_url(argument)?;
            let body = get(&stack, address, path).await?;
            tokio::task::spawn_blocking(move || io::Write::write_all(&mut io::stdout(), &body))
                .await??;
            stack.shutdown().await;
        }
        other => return Err(format!("{other} is neither `serve` nor `get`").into()),
    }
    Ok(())
}

/// Answers requests for the files of `directory` until the stack is shut down.
pub(crate) async fn serve(listener: TcpListener, directory: PathBuf) {
    let directory: Arc<Path> = directory.into();
    while let Ok((stream, peer)) = listener.accept().await {
        let directory = Arc::clone(&directory);
        tokio::spawn(async move {
            if let Err(error) = answer(stream, &directory).await {
                eprintln!("{peer}: {error}");
            }
        });
    }
}

/// One request, one answer.
async fn answer(stream: TcpStream, directory: &Path) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let head = read_head(&mut stream).await?;
    let stream = stream.get_mut();
    let mut words = head.split_whitespace();
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let file = match file_of(directory, target) {
        _ if method != "GET" => Err("405 Method Not Allowed"),
        // A thread may wait for the disk, the runtime may not.
        Some(path) => {
            tokio::task::spawn_blocking(|| std::fs::read(path)).await?.map_err(|_| "404 Not Found")
        }
        None => Err("400 Bad Request"),
    };
    let (status, body) = match &file {
        Ok(body) => ("200 OK", &body[..]),
        Err(status) => (*status, status.as_bytes()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\
         Content-Type: application/octet-stream\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.shutdown().await
}

/// Fetches one file.
pub(crate) async fn get(stack: &Stack, address: SocketAddr, path: &str) -> io::Result<Vec<u8>> {
    let mut stream = stack.connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut stream = BufReader::new(stream);
    let head = read_head(&mut stream).await?;
    let status = head.lines().next().unwrap_or("");
    if status.split_whitespace().nth(1) != Some("200") {
        return Err(io::Error::other(format!("the server says: {status}")));
    }
    let mut body = Vec::new();
    stream.read_to_end(&mut body).await?;
    Ok(body)
}

/// Reads everything up to the empty line.
async fn read_head(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let (mut head, mut stream) = (String::new(), stream.take(MAX_HEAD_BYTES));
    loop {
        match stream.read_line(&mut head).await? {
            0 => return Err(io::Error::new(io::ErrorKind::InvalidData, "no whole HTTP header")),
            _ if head.ends_with("\r\n\r\n") => return Ok(head),
            _ => {}
        }
    }
}

/// The path of the requested file, if it is inside the directory.
fn file_of(directory: &Path, target: &str) -> Option<PathBuf> {
    let file = Path::new(target.strip_prefix('/')?);
    let is_plain = file.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain.then(|| directory.join(file))
}

/// Address and path of `http://ADDRESS[:PORT]/PATH`.
fn parse_url(url: &str) -> Result<(SocketAddr, &str), Box<dyn Error>> {
    let rest = url.strip_prefix("http://").ok_or("the URL does not begin with http://")?;
    let at = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(at);
    let address = host.parse().or_else(|_| format!("{host}:80").parse())?;
    Ok((address, if path.is_empty() { "/" } else { path }))
}
