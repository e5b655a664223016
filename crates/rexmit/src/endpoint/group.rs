//! The shards of an endpoint, as its handles see them.

use std::net::SocketAddr;
use std::sync::Arc;

use super::shards::Steering;
use super::state::Shared;

/// The shards of an endpoint: one or more.
#[derive(Clone)]
pub(super) struct Shards {
    all: Arc<[Arc<Shared>]>,
    /// With several shards.
    steering: Option<Steering>,
}

impl Shards {
    /// At least one shard; `steering` is that of their sockets.
    pub(super) fn new(all: Vec<Arc<Shared>>, steering: Option<Steering>) -> Self {
        Self { all: all.into(), steering }
    }

    pub(super) fn all(&self) -> &[Arc<Shared>] {
        &self.all
    }

    /// The shard that answers for what all have in common.
    pub(super) fn first(&self) -> &Arc<Shared> {
        &self.all[0]
    }

    pub(super) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// The shard on which an association with `remote` is begun.
    pub(super) fn home(&self, remote: Option<SocketAddr>) -> &Arc<Shared> {
        let index = self.steering.zip(remote).map_or(0, |(it, remote)| it.home(remote));
        &self.all[index]
    }
}
