//! Thin streams: which streams are judged by themselves (Petlund 2009 §5, §8).
//!
//! Whether a stream is thin, and what that means for timers and losses, is the business of loss
//! recovery.

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
    /// New chunks of it are of the group.
    is_singled_out: bool,
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
        found.filter(|thin| thin.is_singled_out).map_or(0, |thin| thin.group)
    }

    /// Which of them are thin now.
    pub(super) fn thinness(&self, recovery: &Recovery) -> Vec<(u16, Thinness)> {
        let singled_out = self.0.iter().filter(|thin| thin.is_singled_out);
        singled_out.map(|thin| (thin.stream, recovery.thinness(thin.group))).collect()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Singles `stream` out, or ends that.
    pub(super) fn set(
        &mut self,
        stream: u16,
        thin: Option<ThinConfig>,
        recovery: &mut Recovery,
    ) -> Result<(), ThinError> {
        match (self.position(stream), thin) {
            (Ok(index), thin) => {
                let known = &mut self.0[index];
                known.is_singled_out = thin.is_some();
                let thin = thin.unwrap_or(ThinConfig::OFF);
                recovery.set_thin(Some(known.group), thin).expect("the group exists");
            }
            (Err(index), Some(thin)) => {
                let limit = MAX_GROUPS - 1;
                let group = recovery
                    .set_thin(None, thin)
                    .map_err(|_| ThinError::TooManyStreams { limit })?;
                self.0.insert(index, ThinStream { stream, group, is_singled_out: true });
            }
            (Err(_), None) => {}
        }
        Ok(())
    }

    /// The association begins again: what the loss recovery `before` was told still holds.
    pub(super) fn continue_in(&self, recovery: &mut Recovery, before: &Recovery) {
        let _ = recovery.set_thin(Some(0), *before.thin_config(0));
        for group in 1..=self.0.len() as u8 {
            // The same number as before.
            let _ = recovery.set_thin(None, *before.thin_config(group));
        }
    }
}
