//! Detectors of loss.

pub(crate) mod threshold;
