//! The options of every subcommand that has associations.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rexmit::{AssociationConfig, Endpoint, EndpointConfig};
use rexmit_lab::load::Target;

use crate::failure::Failure;
use crate::values;

/// How SCTP is spoken.
#[derive(Clone, Debug, Args)]
pub(crate) struct Transport {
    /// SCTP port of the side that listens.
    #[arg(long, value_name = "PORT", default_value_t = 5000,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) sctp_port: u16,
    /// What is done about loss: a name of `rexmit profiles`.
    #[arg(long, value_name = "NAME", default_value = "rfc9260", value_parser = values::profile)]
    profile: AssociationConfig,
    /// Speak SCTP directly over IP (protocol 132) instead of over UDP; needs CAP_NET_RAW.
    #[arg(long)]
    pub(crate) raw: bool,
}

impl Transport {
    /// The associations, changed as `change` wants.
    pub(crate) fn association(
        &self,
        change: impl FnOnce(&mut AssociationConfig),
    ) -> Arc<AssociationConfig> {
        let mut association = self.profile.clone();
        change(&mut association);
        Arc::new(association)
    }

    /// An endpoint that accepts associations, and where it listens in words.
    pub(crate) fn listen(
        &self,
        address: SocketAddr,
        association: Arc<AssociationConfig>,
    ) -> Result<Endpoint, Failure> {
        let port = self.sctp_port;
        let config =
            EndpointConfig { port, accept: true, association, ..EndpointConfig::default() };
        let endpoint = if self.raw {
            Endpoint::bind_raw(address.ip(), config)?
        } else {
            Endpoint::bind(address, config)?
        };
        if self.raw {
            eprintln!("listening on {}, SCTP port {port}", endpoint.local_addr().ip());
        } else {
            eprintln!("listening on {}, SCTP port {port}", endpoint.local_addr());
        }
        Ok(endpoint)
    }

    /// The listening side as others connect to it.
    pub(crate) fn target(
        &self,
        remote: SocketAddr,
        association: Arc<AssociationConfig>,
        patience: Duration,
    ) -> Target {
        Target { remote, sctp_port: self.sctp_port, raw: self.raw, association, patience }
    }
}
