//! The settings of a flow over a rival.

use super::error::ExecuteError;
use super::problem::{Problem, Problems};
use super::spec::{ReceiverSpec, Scenario, ThinFlow, TransportKind};
use super::traffic::list;
use crate::rivals::{ARE_BUILT, HOW_TO_BUILD, Rival};

impl TransportKind {
    /// The rival, as it is by default, if it is one.
    pub(super) const fn rival(self) -> Option<Rival> {
        match self {
            Self::Sctp | Self::Tcp => None,
            Self::DcSctp => Some(Rival::DcSctp { is_tuned: false }),
            Self::SctpProto => Some(Rival::SctpProto),
            Self::Kcp => Some(Rival::Kcp { is_tuned: false }),
            Self::Quinn => Some(Rival::Quinn { is_tuned: false }),
        }
    }
}

impl ThinFlow {
    /// The rival that carries it, if one does.
    pub(super) fn rival(&self) -> Option<Rival> {
        let rival = self.transport.rival()?;
        self.profile.as_deref().map_or(Some(rival), |name| rival.with_profile(name))
    }

    /// Finds settings that a rival does not have; `false` if it is not a rival.
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
        let ours = [
            ("recovery", !self.recovery.is_empty()),
            ("mtu", self.mtu.is_some()),
            ("send_buffer", self.send_buffer.is_some()),
            ("nagle", self.nagle),
            ("receiver", self.receiver != ReceiverSpec::default()),
        ];
        for (field, _) in ours.into_iter().filter(|(_, is_there)| *is_there) {
            problems.add(field, "it is not for rivals, which have profiles alone: leave it out");
        }
        true
    }
}

/// Refuses to run what this program does not have.
pub(super) fn find_built(scenario: &Scenario) -> Result<(), ExecuteError> {
    let mut flows = scenario.thin.values();
    if ARE_BUILT || flows.all(|flow| flow.transport.rival().is_none()) {
        return Ok(());
    }
    Err(ExecuteError::NotBuilt(HOW_TO_BUILD))
}

/// The problem of a flow that its transport cannot carry.
pub(super) fn not_of_rivals(transport: TransportKind) -> Result<(), Problem> {
    match transport.rival() {
        None => Ok(()),
        Some(_) => {
            Err(Problem::of("transport", "rivals carry thin flows alone: choose `sctp` or `tcp`"))
        }
    }
}
