//! Flows over other implementations.

use super::error::ExecuteError;
use super::problem::{Problem, Problems};
use super::spec::{ReceiverSpec, Scenario, ThinFlow, TransportKind};
use super::traffic::list;
use crate::rivals::{ARE_BUILT, DcSctpProfile, HOW_TO_BUILD, QuinnProfile, Rival};

impl TransportKind {
    /// The implementation with its default profile, if this transport is one of those in
    /// [`rivals`](crate::rivals).
    pub(super) const fn rival(self) -> Option<Rival> {
        match self {
            Self::Sctp | Self::Tcp => None,
            Self::DcSctp => Some(Rival::DcSctp(DcSctpProfile::Default)),
            Self::SctpProto => Some(Rival::SctpProto),
            Self::Kcp => Some(Rival::Kcp { is_tuned: false }),
            Self::Quinn => Some(Rival::Quinn(QuinnProfile::Default)),
        }
    }
}

impl ThinFlow {
    /// The implementation that carries the flow, if it is one of those in
    /// [`rivals`](crate::rivals).
    pub(super) fn rival(&self) -> Option<Rival> {
        let rival = self.transport.rival()?;
        self.profile.as_deref().map_or(Some(rival), |name| rival.with_profile(name))
    }

    /// Reports settings that the implementation does not have; returns `false` if the flow uses
    /// rexmit's transports.
    pub(super) fn is_of_rival(&self, problems: &mut Problems) -> bool {
        let Some(rival) = self.transport.rival() else { return false };
        if let Some(name) =
            self.profile.as_deref().filter(|name| rival.with_profile(name).is_none())
        {
            let known = list(rival.profiles().iter().copied());
            problems.add("profile", format!("it has no profile `{name}`: choose {known}"));
        }
        if self.unordered && !rival.has_unordered() {
            problems.add("unordered", "it delivers in order only: leave it out");
        }
        if self.transfer && !rival.has_transfer() {
            problems.add("transfer", "its streams have no priorities: leave it out");
        }
        let ours = [
            ("recovery", !self.recovery.is_empty()),
            ("mtu", self.mtu.is_some()),
            ("send_buffer", self.send_buffer.is_some()),
            ("nagle", self.nagle),
            ("receiver", self.receiver != ReceiverSpec::default()),
        ];
        for (field, _) in ours.into_iter().filter(|(_, is_there)| *is_there) {
            problems.add(field, "not supported by rivals, which have only profiles: leave it out");
        }
        true
    }
}

/// Returns an error if the scenario needs an implementation that this program does not include.
pub(super) fn find_built(scenario: &Scenario) -> Result<(), ExecuteError> {
    let mut flows = scenario.thin.values();
    if ARE_BUILT || flows.all(|flow| flow.transport.rival().is_none()) {
        return Ok(());
    }
    Err(ExecuteError::NotBuilt(HOW_TO_BUILD))
}

/// The error for a flow that this transport cannot carry.
pub(super) fn not_of_rivals(transport: TransportKind) -> Result<(), Problem> {
    match transport.rival() {
        None => Ok(()),
        Some(_) => {
            Err(Problem::of("transport", "rivals carry thin flows only: choose `sctp` or `tcp`"))
        }
    }
}
