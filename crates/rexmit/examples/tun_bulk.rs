//! How fast our TCP is over TUN devices, against the kernel's over the same devices (as root):
//!
//! ```text
//! cargo run --release -p rexmit --example tun_bulk -- [MEGABYTES]
//! ```
//!
//! Two kernels (network namespaces) are connected by a pair of TUN devices and a relay between them. One sends to the
//! other; then our stack, on a third device of the first kernel, which routes its packets, sends and receives over the
//! same pair; then our stack exchanges data with the first kernel directly, without the pair. The result is one line of
//! JSON with rates in Mbit/s and their ratios to that between the kernels, all measured in one run.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use rexmit::clock;
use rexmit::tcp::{Stack, StackConfig, TcpStream};
use rexmit::tun::{AsyncTun, Batch, NetNamespace, Tun, TunConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes per read and write, on both sides.
const PIECE: usize = 128 * 1024;
/// Nothing takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(120);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let megabytes = std::env::args().nth(1).map_or(Ok(200), |text| text.parse())?;
    let len: usize = megabytes * 1_000_000;
    let site = Site::new()?;
    let (near, far) = (site.near.clone(), site.far.clone());

    let kernels = kernel_to_kernel(&near, &far, len).await?;
    let sending = site.send_to(&far, FAR, len).await?;
    let receiving = site.receive_from(&far, FAR, len).await?;
    let sending_direct = site.send_to(&near, NEAR, len).await?;
    let receiving_direct = site.receive_from(&near, NEAR, len).await?;
    let ratio = |rate: f64| rate / kernels;
    println!(
        "{{\"bytes\":{len},\"kernel_to_kernel\":{kernels:.0},\
         \"ours_to_kernel\":{sending:.0},\"kernel_to_ours\":{receiving:.0},\
         \"ours_to_kernel_direct\":{sending_direct:.0},\
         \"kernel_to_ours_direct\":{receiving_direct:.0},\
         \"ratio_sending\":{:.2},\"ratio_receiving\":{:.2},\
         \"ratio_sending_direct\":{:.2},\"ratio_receiving_direct\":{:.2}}}",
        ratio(sending),
        ratio(receiving),
        ratio(sending_direct),
        ratio(receiving_direct),
    );
    Ok(())
}

const OURS: [u8; 4] = [10, 91, 0, 2];
const NEAR: [u8; 4] = [10, 91, 0, 1];
const FAR: [u8; 4] = [10, 92, 0, 2];

/// The kernels, the devices that connect them, and our stack.
struct Site {
    near: NetNamespace,
    far: NetNamespace,
    stack: Stack,
}

impl Site {
    fn new() -> Result<Self> {
        let (near, far) = (NetNamespace::new()?, NetNamespace::new()?);
        let config = |address: [u8; 4], is_default_route| {
            TunConfig::default().ipv4(Some((address.into(), 24))).is_default_route(is_default_route)
        };
        let ours = Tun::open_in(&near, &config(NEAR, false))?;
        let ends = [
            Tun::open_in(&near, &config([10, 92, 0, 1], false))?,
            Tun::open_in(&far, &config(FAR, true))?,
        ];
        near.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"))??;
        for namespace in [&near, &far] {
            // As in our profile; every namespace may select it.
            let control = "/proc/sys/net/ipv4/tcp_congestion_control";
            namespace.run(|| std::fs::write(control, "reno"))??;
        }
        std::thread::spawn(|| relay(ends));
        let device = AsyncTun::new(ours)?;
        let stack = Stack::new(device, [OURS.into()], StackConfig::default())?;
        Ok(Self { near, far, stack })
    }

    async fn send_to(&self, kernel: &NetNamespace, address: [u8; 4], len: usize) -> Result<f64> {
        let (mut ours, theirs) = self.connect(kernel, address).await?;
        let start = clock::now();
        let receiving = tokio::task::spawn_blocking(move || receive(theirs));
        let piece = vec![7; PIECE];
        let sending = async {
            let mut left = len;
            while left > 0 {
                left -= ours.write(&piece[..left.min(PIECE)]).await?;
            }
            ours.shutdown().await
        };
        tokio::time::timeout(TIME_LIMIT, sending).await??;
        rate(receiving.await??, len, start)
    }

    async fn receive_from(
        &self,
        kernel: &NetNamespace,
        address: [u8; 4],
        len: usize,
    ) -> Result<f64> {
        let (mut ours, theirs) = self.connect(kernel, address).await?;
        let start = clock::now();
        let sending = tokio::task::spawn_blocking(move || send(theirs, len));
        let receiving = async {
            let (mut piece, mut received) = (vec![0; PIECE], 0);
            loop {
                match ours.read(&mut piece).await? {
                    0 => return std::io::Result::Ok(received),
                    count => received += count,
                }
            }
        };
        let received = tokio::time::timeout(TIME_LIMIT, receiving).await??;
        sending.await??;
        rate(received, len, start)
    }

    async fn connect(
        &self,
        kernel: &NetNamespace,
        address: [u8; 4],
    ) -> Result<(TcpStream, std::net::TcpStream)> {
        let (listener, address) = listen(kernel, address)?;
        let accepting = tokio::task::spawn_blocking(move || listener.accept());
        let ours = self.stack.connect(address).await?;
        Ok((ours, with_time_limit(accepting.await??.0)?))
    }
}

async fn kernel_to_kernel(near: &NetNamespace, far: &NetNamespace, len: usize) -> Result<f64> {
    let (listener, address) = listen(far, FAR)?;
    let connect = || std::net::TcpStream::connect(address);
    let sender = with_time_limit(near.run(connect)??)?;
    let receiver = with_time_limit(listener.accept()?.0)?;
    let start = clock::now();
    let receiving = tokio::task::spawn_blocking(move || receive(receiver));
    tokio::task::spawn_blocking(move || send(sender, len)).await??;
    rate(receiving.await??, len, start)
}

fn listen(kernel: &NetNamespace, address: [u8; 4]) -> Result<(TcpListener, SocketAddr)> {
    let listener = kernel.run(|| TcpListener::bind((IpAddr::from(address), 0)))??;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn with_time_limit(stream: std::net::TcpStream) -> Result<std::net::TcpStream> {
    stream.set_read_timeout(Some(TIME_LIMIT))?;
    stream.set_write_timeout(Some(TIME_LIMIT))?;
    Ok(stream)
}

fn send(mut stream: std::net::TcpStream, len: usize) -> std::io::Result<()> {
    let piece = vec![7; PIECE];
    let mut left = len;
    while left > 0 {
        left -= stream.write(&piece[..left.min(PIECE)])?;
    }
    stream.shutdown(std::net::Shutdown::Write)
}

fn receive(mut stream: std::net::TcpStream) -> std::io::Result<usize> {
    let (mut piece, mut received) = (vec![0; PIECE], 0);
    loop {
        match stream.read(&mut piece)? {
            0 => return Ok(received),
            count => received += count,
        }
    }
}

/// Mbit/s.
fn rate(received: usize, len: usize, start: rexmit::Instant) -> Result<f64> {
    if received != len {
        return Err(format!("{received} of {len} bytes arrived").into());
    }
    Ok(len as f64 * 8e-6 / (clock::now() - start).as_secs_f64())
}

/// Carries packets between the devices for as long as the program runs.
fn relay(ends: [Tun; 2]) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let [near, far] = ends;
        let (near, far) = (Arc::new(AsyncTun::new(near)?), Arc::new(AsyncTun::new(far)?));
        tokio::try_join!(carry(&near, &far), carry(&far, &near))?;
        Ok(())
    })
}

async fn carry(from: &AsyncTun, to: &AsyncTun) -> std::io::Result<()> {
    let mut batch = Batch::new(from.mtu());
    loop {
        from.receive(&mut batch).await?;
        for packet in batch.iter() {
            to.send(packet)?;
        }
        tokio::task::yield_now().await; // The other direction.
    }
}
