//! Traffic for the tests of [`rexmit_kernels`], as a program inside kernels: UDP echoes and TCP transfers, with the times that
//! the kernel's clock shows.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Err(error) = traffic::run(&arguments) {
        eprintln!("rexmit-kernels-traffic {arguments:?}: {error}");
        std::process::exit(1);
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod traffic {
    use std::io::{self, Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use rustix::thread::clock_nanosleep_absolute;
    use rustix::time::{ClockId, Timespec, clock_gettime};

    pub(crate) fn run(arguments: &[&str]) -> io::Result<()> {
        let number = |text: &str| text.parse().map_err(io::Error::other);
        match arguments {
            ["echo", address, count] => echo(address, number(count)?),
            ["ping", address, count] => ping(address, number(count)?),
            ["receive", address] => receive(address),
            ["send", address, bytes] => send(address, number(bytes)?),
            _ => Err(io::Error::other(
                "echo|ping ADDRESS COUNT, receive ADDRESS, send ADDRESS BYTES",
            )),
        }
    }

    /// Nanoseconds on the kernel's clock.
    fn now() -> u64 {
        let time = clock_gettime(ClockId::Monotonic);
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
    }

    /// Returns `count` datagrams to their senders.
    fn echo(address: &str, count: u64) -> io::Result<()> {
        let socket = UdpSocket::bind(address)?;
        let mut bytes = [0; 1500];
        for _ in 0..count {
            let (len, from) = socket.recv_from(&mut bytes)?;
            socket.send_to(&bytes[..len], from)?;
        }
        Ok(())
    }

    /// Sends `count` datagrams, one per second, and prints the time in nanoseconds until each returned.
    fn ping(address: &str, count: u64) -> io::Result<()> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect(address)?;
        for number in 0..count {
            // At full seconds, so that the clocks of the other kernels have expired timers.
            let second = i64::try_from(now() / 1_000_000_000 + 1).map_err(io::Error::other)?;
            let at = Timespec { tv_sec: second, tv_nsec: 0 };
            clock_nanosleep_absolute(ClockId::Monotonic, &at)?;
            let sent = now();
            socket.send(&number.to_be_bytes())?;
            socket.recv(&mut [0; 8])?;
            println!("{}", now() - sent);
        }
        Ok(())
    }

    /// Reads from one connection until its end; prints the bytes, and the time in nanoseconds since it was accepted.
    fn receive(address: &str) -> io::Result<()> {
        let (mut stream, _) = TcpListener::bind(address)?.accept()?;
        let start = now();
        let mut bytes = vec![0; 1 << 16];
        let mut total = 0;
        loop {
            let read = stream.read(&mut bytes)?;
            if read == 0 {
                println!("{total} {}", now() - start);
                return Ok(());
            }
            total += read;
        }
    }

    /// Sends `bytes` bytes over a connection, and waits for its end.
    fn send(address: &str, bytes: u64) -> io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        let data: Vec<u8> = (0..1 << 16).map(|place: u32| place as u8).collect();
        let mut left = usize::try_from(bytes).map_err(io::Error::other)?;
        while left > 0 {
            let len = left.min(data.len());
            stream.write_all(&data[..len])?;
            left -= len;
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        stream.read_to_end(&mut Vec::new())?;
        Ok(())
    }
}
