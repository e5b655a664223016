//! Traffic for the tests of [`rexmit_kernels`], as a program inside kernels: UDP echoes, and messages and transfers
//! over TCP and SCTP, with the times that
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
    use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
    use std::os::fd::OwnedFd;

    use rustix::net::{AddressFamily, SocketType, ipproto};
    use rustix::thread::clock_nanosleep_absolute;
    use rustix::time::{ClockId, Timespec, clock_gettime};

    const USAGE: &str = "echo|ping ADDRESS COUNT, receive tcp|sctp ADDRESS, send tcp|sctp ADDRESS BYTES, talk tcp|sctp ADDRESS COUNT";

    pub(crate) fn run(arguments: &[&str]) -> io::Result<()> {
        let number = |text: &str| text.parse().map_err(io::Error::other);
        match arguments {
            ["echo", address, count] => echo(address, number(count)?),
            ["ping", address, count] => ping(address, number(count)?),
            ["receive", protocol, address] => receive(&listening(protocol, address)?),
            ["send", protocol, address, bytes] => {
                send(connected(protocol, address)?, number(bytes)?)
            }
            ["talk", protocol, address, count] => {
                talk(connected(protocol, address)?, number(count)?)
            }
            _ => Err(io::Error::other(USAGE)),
        }
    }

    /// Nanoseconds on the kernel's clock.
    fn now() -> u64 {
        let time = clock_gettime(ClockId::Monotonic);
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
    }

    /// Waits for the next full second.
    fn wait_for_second() -> io::Result<()> {
        let second = i64::try_from(now() / 1_000_000_000 + 1).map_err(io::Error::other)?;
        let at = Timespec { tv_sec: second, tv_nsec: 0 };
        Ok(clock_nanosleep_absolute(ClockId::Monotonic, &at)?)
    }

    fn socket(protocol: &str) -> io::Result<OwnedFd> {
        let protocol = match protocol {
            "tcp" => ipproto::TCP,
            "sctp" => ipproto::SCTP,
            _ => return Err(io::Error::other(USAGE)),
        };
        Ok(rustix::net::socket(AddressFamily::INET, SocketType::STREAM, Some(protocol))?)
    }

    fn parsed(address: &str) -> io::Result<SocketAddr> {
        address.parse().map_err(io::Error::other)
    }

    /// A connection. The types for TCP are those of any connected stream.
    fn connected(protocol: &str, address: &str) -> io::Result<TcpStream> {
        let socket = socket(protocol)?;
        rustix::net::connect(&socket, &parsed(address)?)?;
        Ok(socket.into())
    }

    fn listening(protocol: &str, address: &str) -> io::Result<TcpListener> {
        let socket = socket(protocol)?;
        rustix::net::bind(&socket, &parsed(address)?)?;
        rustix::net::listen(&socket, 1)?;
        Ok(socket.into())
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
            wait_for_second()?;
            let sent = now();
            socket.send(&number.to_be_bytes())?;
            socket.recv(&mut [0; 8])?;
            println!("{}", now() - sent);
        }
        Ok(())
    }

    /// Reads from one connection until its end; prints the bytes, and the time in nanoseconds since it was accepted.
    fn receive(listener: &TcpListener) -> io::Result<()> {
        // The address of the peer would be that of a TCP socket.
        let mut stream = TcpStream::from(rustix::net::accept(listener)?);
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

    /// Sends `count` messages of eight bytes, one per second, and prints the time in nanoseconds until each returned.
    fn talk(mut stream: TcpStream, count: u64) -> io::Result<()> {
        for number in 0..count {
            wait_for_second()?;
            let sent = now();
            stream.write_all(&number.to_be_bytes())?;
            stream.read_exact(&mut [0; 8])?;
            println!("{}", now() - sent);
        }
        Ok(())
    }

    /// Sends `bytes` bytes over a connection, and waits for its end.
    fn send(mut stream: TcpStream, bytes: u64) -> io::Result<()> {
        let data: Vec<u8> = (0..1 << 14).map(|place: u32| place as u8).collect();
        let mut left = usize::try_from(bytes).map_err(io::Error::other)?;
        while left > 0 {
            let len = left.min(data.len());
            stream.write_all(&data[..len])?;
            left -= len;
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        match stream.read_to_end(&mut Vec::new()) {
            // An association ends with its shutdown, and a read after that fails.
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(error),
            _ => Ok(()),
        }
    }
}
