//! The options of every subcommand that uses associations.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rexmit::{
    AckCopies, AssociationConfig, Encryption, Endpoint, EndpointConfig, PathMtuConfig, TimeLimits,
};
use rexmit_perf::load::Target;

use crate::failure::Failure;
use crate::tls::Tls;
use crate::values;

/// The values of `--ack-copies`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum AckCopiesOption {
    Request,
    Always,
    Off,
}

/// The protocol options of SCTP.
#[derive(Clone, Debug, Args)]
pub(crate) struct Transport {
    /// SCTP port of the listening side.
    #[arg(long, value_name = "PORT", default_value_t = 5000,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) sctp_port: u16,
    /// Recovery profile: a name of `rexmit profiles`.
    #[arg(long, value_name = "NAME", default_value = "interactive", value_parser = values::profile)]
    profile: AssociationConfig,
    /// Discover the path MTU, and send larger packets, up to 9000 bytes, if the path allows them.
    #[arg(long)]
    path_mtu: bool,
    /// Second copies of SACKs, so that a lost SACK does not cause a retransmission. `request`: ask the peer to send
    /// each SACK for our thin streams twice; `always`: send each SACK for the peer's thin streams twice; `off`: never
    /// send them twice. By default they are sent twice to peers that request it.
    #[arg(long, value_name = "WHEN")]
    ack_copies: Option<AckCopiesOption>,
    /// Send SCTP directly over IP (protocol 132) instead of over UDP; needs CAP_NET_RAW.
    #[arg(long, requires = "unencrypted")]
    pub(crate) raw: bool,
    /// Local address; may be repeated. With several, the association has a path from each, and uses
    /// another path when one fails.
    #[arg(long = "local", value_name = "ADDR", requires = "unencrypted")]
    locals: Vec<IpAddr>,
    #[command(flatten)]
    tls: Tls,
}

/// The addresses of a peer.
#[derive(Clone, Debug, Args)]
pub(crate) struct Peers {
    /// Further address of the peer, with the same UDP port, tried if the first does not answer; may
    /// be repeated. Addresses that the peer lists during the handshake need not be given.
    #[arg(long = "peer", value_name = "ADDR", requires = "unencrypted")]
    peers: Vec<IpAddr>,
}

impl Transport {
    /// The configuration of the associations, modified by `change`.
    pub(crate) fn association(
        &self,
        change: impl FnOnce(&mut AssociationConfig),
    ) -> Arc<AssociationConfig> {
        let mut association = self.profile.clone();
        if self.path_mtu {
            association.path_mtu = Some(PathMtuConfig::default());
        }
        let ack_copies = &mut association.sack.ack_copies;
        match self.ack_copies {
            Some(AckCopiesOption::Request) => ack_copies.request = true,
            Some(AckCopiesOption::Always) => ack_copies.send = AckCopies::Always,
            Some(AckCopiesOption::Off) => ack_copies.send = AckCopies::Off,
            None => {}
        }
        change(&mut association);
        Arc::new(association)
    }

    /// An endpoint that accepts associations.
    pub(crate) fn listen(
        &self,
        address: SocketAddr,
        association: &Arc<AssociationConfig>,
    ) -> Result<Endpoint, Failure> {
        let endpoints = self.listen_at(address, 1, 1, association)?;
        Ok(endpoints.into_iter().next().expect("one address has one endpoint"))
    }

    /// Endpoints that accept associations at `count` consecutive addresses, with the same certificate, each with so many shards.
    pub(crate) fn listen_at(
        &self,
        first: SocketAddr,
        count: u32,
        shards: usize,
        association: &Arc<AssociationConfig>,
    ) -> Result<Vec<Endpoint>, Failure> {
        let encryption = self.tls.encryption()?;
        let mut endpoints = Vec::new();
        for ip in values::consecutive(first.ip(), count)? {
            let address = SocketAddr::new(ip, first.port());
            let (endpoint, shown) =
                self.bind(address, shards, Arc::clone(association), encryption.clone())?;
            if endpoints.is_empty() {
                eprintln!("listening on {shown}, SCTP port {}", self.sctp_port);
            }
            endpoints.push(endpoint);
        }
        if let Some(last) = endpoints.get(1..).and_then(<[_]>::last) {
            eprintln!("and on all addresses up to {}", last.local_addr());
        }
        if let Some(encryption) = encryption {
            eprintln!("fingerprint {}", encryption.identity.fingerprint());
        }
        Ok(endpoints)
    }

    /// An endpoint that accepts associations, and its addresses as text.
    fn bind(
        &self,
        address: SocketAddr,
        shards: usize,
        association: Arc<AssociationConfig>,
        encryption: Option<Encryption>,
    ) -> Result<(Endpoint, String), Failure> {
        let port = self.sctp_port;
        let (address, addresses) = self.listening(address);
        let mut shown = addresses.clone();
        let config = EndpointConfig::default()
            .port(port)
            .accept(true)
            .shards(shards)
            .addresses(addresses)
            .association(association);
        let endpoint = if self.raw {
            Endpoint::bind_raw(address.ip(), config)?
        } else if let Some(encryption) = encryption {
            Endpoint::bind(address, config, encryption)?
        } else {
            Endpoint::bind_unencrypted(address, config)?
        };
        // Shutdown waits without limit until all sent messages are delivered.
        let endpoint = endpoint.with_time_limits(TimeLimits::default().shutdown(None));
        let bound = endpoint.local_addr();
        if shown.is_empty() {
            shown.push(bound.ip());
        }
        let in_words = |ip: IpAddr| match self.raw {
            true => ip.to_string(),
            false => SocketAddr::new(ip, bound.port()).to_string(),
        };
        let shown: Vec<_> = shown.into_iter().map(in_words).collect();
        Ok((endpoint, shown.join(", ")))
    }

    /// The address to which an endpoint at `address` is bound, and all its addresses if there are several: one socket
    /// sends from all of them.
    fn listening(&self, address: SocketAddr) -> (SocketAddr, Vec<IpAddr>) {
        if self.locals.is_empty() {
            return (address, Vec::new());
        }
        let mut all = self.locals.clone();
        if !address.ip().is_unspecified() && !all.contains(&address.ip()) {
            all.insert(0, address.ip());
        }
        let is_ipv4 = all.iter().all(IpAddr::is_ipv4);
        let any: IpAddr =
            if is_ipv4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        (SocketAddr::new(any, address.port()), all)
    }

    /// Whether only peers with certain certificates are trusted.
    pub(crate) const fn names_peers(&self) -> bool {
        self.tls.names_peers()
    }

    /// The listening side as the target of connections.
    pub(crate) fn target(
        &self,
        remote: SocketAddr,
        peers: &Peers,
        association: Arc<AssociationConfig>,
        setup_timeout: Duration,
    ) -> Result<Target, Failure> {
        let encryption = self.tls.encryption()?;
        if let Some(encryption) = &encryption {
            eprintln!("our fingerprint {}", encryption.identity.fingerprint());
        }
        Ok(Target {
            remote,
            more_receivers: Vec::new(),
            more_remotes: peers.peers.clone(),
            locals: self.locals.clone(),
            sctp_port: self.sctp_port,
            raw: self.raw,
            encryption,
            association,
            setup_timeout,
        })
    }
}
