//! Thin streams: which streams are singled out (Petlund 2009 §5, §8).
//!
//! Loss recovery decides whether a stream is thin, and what that means for timers and losses.

use rexmit_recovery::{MAX_GROUPS, ThinConfig, Thinness};

use super::super::context::Recovery;
use crate::error::ThinError;

/// The streams that were singled out, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct ThinStreams(Vec<ThinStream>);

#[derive(Clone, Copy, Debug)]
struct ThinStream {
    stream: u16,
    group: u8,
    /// Whether new chunks of the stream belong to the group, and what singled the stream out.
    singled_out: SingledOut,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SingledOut {
    No,
    /// Singled out by `by_stream`, with the mechanisms of the association.
    ByUse,
    /// Singled out by the application, with mechanisms of their own.
    ByApplication,
}

impl ThinStream {
    fn is_singled_out(self) -> bool {
        self.singled_out != SingledOut::No
    }
}

impl ThinStreams {
    fn position(&self, stream: u16) -> Result<usize, usize> {
        self.0.binary_search_by_key(&stream, |thin| thin.stream)
    }

    /// The group of loss recovery that new chunks of `stream` belong to.
    pub(super) fn group_of(&self, stream: u16) -> u8 {
        if self.0.is_empty() {
            return 0;
        }
        let found = self.position(stream).ok().map(|index| self.0[index]);
        found.filter(|thin| thin.is_singled_out()).map_or(0, |thin| thin.group)
    }

    /// The streams that are singled out, and whether each is thin now.
    pub(super) fn thinness(&self, recovery: &Recovery) -> Vec<(u16, Thinness)> {
        let singled_out = self.0.iter().filter(|thin| thin.is_singled_out());
        singled_out.map(|thin| (thin.stream, recovery.thinness(thin.group))).collect()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Called when a message of `stream` is accepted: the stream is singled out if the profile says so and
    /// there is a group left.
    pub(super) fn on_used(&mut self, stream: u16, recovery: &mut Recovery) {
        if !recovery.thin_config(0).sctp.by_stream {
            return;
        }
        let thin = *recovery.thin_config(0);
        let Err(index) = self.position(stream) else { return };
        if let Ok(group) = recovery.set_thin(None, thin) {
            self.0.insert(index, ThinStream { stream, group, singled_out: SingledOut::ByUse });
        }
    }

    /// Called when the mechanisms of the association have changed, which apply to all streams without their own.
    pub(super) fn on_mechanisms_set(&mut self, thin: ThinConfig, recovery: &mut Recovery) {
        for known in self.0.iter_mut().filter(|known| known.singled_out == SingledOut::ByUse) {
            recovery.set_thin(Some(known.group), thin).expect("the group exists");
        }
    }

    /// Singles `stream` out with these mechanisms, or ends that.
    pub(super) fn set(
        &mut self,
        stream: u16,
        thin: Option<ThinConfig>,
        recovery: &mut Recovery,
    ) -> Result<(), ThinError> {
        match (self.position(stream), thin) {
            (Ok(index), thin) => {
                let known = &mut self.0[index];
                let of_all = *recovery.thin_config(0);
                let (singled_out, thin) = match thin {
                    Some(thin) => (SingledOut::ByApplication, thin),
                    None if of_all.sctp.by_stream => (SingledOut::ByUse, of_all),
                    None => (SingledOut::No, ThinConfig::OFF),
                };
                known.singled_out = singled_out;
                recovery.set_thin(Some(known.group), thin).expect("the group exists");
            }
            (Err(index), Some(thin)) => {
                let limit = MAX_GROUPS - 1;
                let group = recovery
                    .set_thin(None, thin)
                    .map_err(|_| ThinError::TooManyStreams { limit })?;
                self.0.insert(
                    index,
                    ThinStream { stream, group, singled_out: SingledOut::ByApplication },
                );
            }
            (Err(_), None) => {}
        }
        Ok(())
    }

    /// Applies the groups and mechanisms of the loss recovery `before` to the new one, after a restart of the
    /// association.
    pub(super) fn continue_in(&self, recovery: &mut Recovery, before: &Recovery) {
        let _ = recovery.set_thin(Some(0), *before.thin_config(0));
        for group in 1..=self.0.len() as u8 {
            // The same number as before.
            let _ = recovery.set_thin(None, *before.thin_config(group));
        }
    }
}
