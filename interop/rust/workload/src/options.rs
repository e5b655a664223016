//! The command line that all peers share.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::{Direction, Fault, Plan};

/// The side that initiates the association, and shuts it down at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Connects, and shuts the association down when both directions are done.
    Client,
    /// Is connected to; waits for the client's shutdown.
    Server,
}

/// The directions that carry messages, seen from this peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Both at the same time.
    Both,
    /// Only this peer sends.
    Send,
    /// Only the other peer sends.
    Receive,
}

/// The options of one peer.
#[derive(Clone, Debug)]
pub struct Options {
    /// Client or server.
    pub role: Role,
    /// The UDP address to bind.
    pub local: SocketAddr,
    /// Further addresses of this peer, with the same port; only rexmit and usrsctp have this option.
    pub more_locals: Vec<IpAddr>,
    /// The UDP address to send to. A server answers to the source of packets instead.
    pub remote: Option<SocketAddr>,
    /// The number of messages in each direction that carries any.
    pub messages: u32,
    /// The seed of both plans.
    pub seed: u64,
    /// Which directions carry messages.
    pub mode: Mode,
    /// The SCTP port of both ends.
    pub sctp_port: u16,
    /// Streams in each direction.
    pub streams: u16,
    /// The time after which the peer stops and reports its results so far.
    pub timeout: Duration,
    /// Time for which a client still answers packets after the association; it ends earlier at the end of its standard
    /// input.
    pub linger: Duration,
    /// A deliberate fault in the sent messages.
    pub fault: Option<Fault>,
    /// Recovery profile by name; only rexmit has profiles.
    pub profile: Option<String>,
    /// The time between two messages; only rexmit and usrsctp have this option.
    pub every: Duration,
    /// The layer below SCTP, or TCP instead of SCTP; only rexmit, usrsctp and Linux have others than UDP.
    pub over: Over,
    /// RTO.Min and RTO.Initial, RTO.Max being four times as much; rexmit and usrsctp alone take it.
    pub rto_min: Option<Duration>,
    /// Path.Max.Retrans; only rexmit and usrsctp have this option.
    pub path_max_retrans: Option<u32>,
    /// The use of several paths; only rexmit has this option.
    pub paths: Paths,
    /// Partial reliability: the most retransmissions of a chunk. Only rexmit, usrsctp and Linux have this option and
    /// the following ones.
    pub max_retransmissions: Option<u16>,
    /// All outgoing streams are reset after this many messages (0: never).
    pub reset_after: u32,
    /// Messages of different streams are interleaved (RFC 8260); rexmit, dcsctp, usrsctp and Linux alone.
    pub is_interleaved: bool,
    /// An address that is added once the association is established.
    pub added: Option<IpAddr>,
}

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// SCTP over UDP (RFC 6951).
    Udp,
    /// SCTP directly over IP.
    Ip,
    /// TCP; its IP packets are the payloads of UDP datagrams. Rexmit and Linux alone.
    Tcp,
}

/// Use of several paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// One path at a time, and another one when it is inactive (RFC 9260 §8.2).
    Standard,
    /// One path at a time, and another one when it is potentially failed (RFC 7829).
    PotentiallyFailed,
    /// All paths at once.
    Concurrent,
}

/// The command line in words.
pub const USAGE: &str =
    "usage: PEER --role client|server --local ADDRESS:PORT... [--remote ADDRESS:PORT]
  --remote        UDP address to send to (client); a server answers to where packets come from
  --messages N    messages in each direction (500)
  --seed S        what they are made from (1)
  --mode M        both, send (only this peer sends) or recv (only the other one) (both)
  --streams K     streams in each direction (8)
  --sctp-port P   SCTP port of both ends (5000)
  --timeout SEC   give up after this time (60)
  --linger SEC    a client stays this long to answer late packets, or until its input ends (5)
  --fault F       send with a fault: lose:N, duplicate:N, swap:N, corrupt:N, misplace:N
  --profile P     what is done about loss (rexmit alone)
  --every MS      between two messages (rexmit and usrsctp alone, as --local more than once) (0)
  --over O        udp, ip (rexmit, usrsctp and Linux), or tcp in UDP instead of SCTP (rexmit and Linux) (udp)
  --rto-min MS    RTO.Min and RTO.Initial, RTO.Max four times as much (the same)
  --path-max-retrans N  Path.Max.Retrans (the same)
  --max-retransmissions N  of a chunk, after which its message is abandoned (rexmit, usrsctp and Linux)
  --reset-after N          resets all outgoing streams after so many messages (the same)
  --interleaving 0|1       messages of different streams are (RFC 8260; the same and dcsctp) (0)
  --add-address ADDRESS:PORT  adds it once the association is set up (the same)
  --paths P       standard, pf (RFC 7829) or cmt: what is done with several (rexmit alone)
exit: 0 all arrived intact and the association was shut down; 1 not so; 2 wrong arguments";

impl Options {
    /// Reads the arguments that follow the program's name.
    ///
    /// # Errors
    /// The mistakes, in words.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = arguments.into_iter();
        let (mut role, mut local) = (None, None);
        let mut options = Self {
            role: Role::Client,
            local: SocketAddr::from(([127, 0, 0, 1], 0)),
            more_locals: Vec::new(),
            remote: None,
            messages: 500,
            seed: 1,
            mode: Mode::Both,
            sctp_port: 5000,
            streams: 8,
            timeout: Duration::from_secs(60),
            linger: Duration::from_secs(5),
            fault: None,
            profile: None,
            every: Duration::ZERO,
            over: Over::Udp,
            rto_min: None,
            path_max_retrans: None,
            paths: Paths::Standard,
            max_retransmissions: None,
            reset_after: 0,
            is_interleaved: false,
            added: None,
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--role" => role = Some(parse_role(&value)?),
                "--local" if local.is_some() => {
                    options.more_locals.push(number::<SocketAddr>(&name, &value)?.ip());
                }
                "--local" => local = Some(number(&name, &value)?),
                "--remote" => options.remote = Some(number(&name, &value)?),
                "--messages" => options.messages = number(&name, &value)?,
                "--seed" => options.seed = number(&name, &value)?,
                "--mode" => options.mode = parse_mode(&value)?,
                "--sctp-port" => options.sctp_port = number(&name, &value)?,
                "--streams" => options.streams = number(&name, &value)?,
                "--timeout" => options.timeout = Duration::from_secs(number(&name, &value)?),
                "--linger" => options.linger = Duration::from_secs(number(&name, &value)?),
                "--fault" => options.fault = Some(value.parse()?),
                "--profile" => options.profile = Some(value),
                "--every" => options.every = Duration::from_millis(number(&name, &value)?),
                "--over" => options.over = parse_over(&value)?,
                "--rto-min" => {
                    options.rto_min = Some(Duration::from_millis(number(&name, &value)?));
                }
                "--path-max-retrans" => options.path_max_retrans = Some(number(&name, &value)?),
                "--max-retransmissions" => {
                    options.max_retransmissions = Some(number(&name, &value)?);
                }
                "--interleaving" => options.is_interleaved = number::<u8>(&name, &value)? != 0,
                "--reset-after" => options.reset_after = number(&name, &value)?,
                "--add-address" => {
                    options.added = Some(number::<SocketAddr>(&name, &value)?.ip());
                }
                "--paths" => options.paths = parse_paths(&value)?,
                _ => return Err(format!("{name} is not known")),
            }
        }
        options.role = role.ok_or("--role is missing")?;
        options.local = local.ok_or("--local is missing")?;
        options.validate()?;
        Ok(options)
    }

    /// Reads this process's arguments; on an error prints it and exits with code 2.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::parse(std::env::args().skip(1)).unwrap_or_else(|wrong| {
            eprintln!("{wrong}\n{USAGE}");
            std::process::exit(2);
        })
    }

    fn validate(&self) -> Result<(), String> {
        if self.role == Role::Client && self.remote.is_none() {
            return Err("a client needs --remote".into());
        }
        if self.streams == 0 || self.messages >= 1 << 31 || self.sctp_port == 0 {
            return Err("--streams, --messages or --sctp-port is out of range".into());
        }
        Ok(())
    }

    /// The plan of the messages that this peer sends; empty if it only receives.
    #[must_use]
    pub fn outgoing(&self) -> Plan {
        let count = if self.mode == Mode::Receive { 0 } else { self.messages };
        Plan::new(self.seed, self.direction(), count, self.streams)
    }

    /// The plan of the messages that this peer receives; empty if it only sends.
    #[must_use]
    pub fn incoming(&self) -> Plan {
        let count = if self.mode == Mode::Send { 0 } else { self.messages };
        Plan::new(self.seed, self.direction().reverse(), count, self.streams)
    }

    fn direction(&self) -> Direction {
        match self.role {
            Role::Client => Direction::ClientToServer,
            Role::Server => Direction::ServerToClient,
        }
    }
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name} cannot be '{value}'"))
}

fn parse_role(value: &str) -> Result<Role, String> {
    match value {
        "client" => Ok(Role::Client),
        "server" => Ok(Role::Server),
        _ => Err(format!("--role is client or server, not '{value}'")),
    }
}

fn parse_mode(value: &str) -> Result<Mode, String> {
    match value {
        "both" => Ok(Mode::Both),
        "send" => Ok(Mode::Send),
        "recv" => Ok(Mode::Receive),
        _ => Err(format!("--mode is both, send or recv, not '{value}'")),
    }
}

fn parse_over(value: &str) -> Result<Over, String> {
    match value {
        "udp" => Ok(Over::Udp),
        "ip" => Ok(Over::Ip),
        "tcp" => Ok(Over::Tcp),
        _ => Err(format!("--over is udp, ip or tcp, not '{value}'")),
    }
}

fn parse_paths(value: &str) -> Result<Paths, String> {
    match value {
        "standard" => Ok(Paths::Standard),
        "pf" => Ok(Paths::PotentiallyFailed),
        "cmt" => Ok(Paths::Concurrent),
        _ => Err(format!("--paths is standard, pf or cmt, not '{value}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn reads_a_full_line_and_its_defaults() {
        let options =
            parse("--role client --local 127.0.0.1:1 --remote 127.0.0.1:2 --mode recv").unwrap();
        assert_eq!((options.messages, options.streams, options.sctp_port), (500, 8, 5000));
        assert!(options.outgoing().is_empty());
        assert_eq!(options.incoming().len(), 500);
    }

    #[test]
    fn further_addresses_share_the_port() {
        let options =
            parse("--role server --local 10.0.0.1:9 --local 10.0.1.1:9 --paths cmt").unwrap();
        assert_eq!(options.local, "10.0.0.1:9".parse().unwrap());
        assert_eq!(options.more_locals, ["10.0.1.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(options.paths, Paths::Concurrent);
    }

    #[test]
    fn errors_describe_the_mistake() {
        for (line, word) in [
            ("", "--role is missing"),
            ("--role", "needs a value"),
            ("--role client --local 127.0.0.1:1", "needs --remote"),
            ("--role server --local here", "cannot be 'here'"),
            ("--role server --local 127.0.0.1:1 --streams 0", "out of range"),
            ("--role server --local 127.0.0.1:1 --fault x:1", "no fault"),
            ("--role server --local 127.0.0.1:1 --over air", "udp, ip or tcp"),
            ("--role server --local 127.0.0.1:1 --paths all", "standard, pf or cmt"),
            ("--colour red", "not known"),
        ] {
            assert!(parse(line).unwrap_err().contains(word), "{line}");
        }
    }
}
