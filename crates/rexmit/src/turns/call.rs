//! Waking the driver, once for all work that has accumulated.

use std::task::{Context, Waker};

/// Whether the driver has work, and how to reach it.
#[derive(Debug, Default)]
pub(crate) struct DriverCall {
    waker: Option<Waker>,
    has_work: bool,
}

impl DriverCall {
    /// Called when the driver's turn begins: stores its waker. Work noted before is forgotten, since the turn handles
    /// all of it.
    pub(crate) fn register(&mut self, cx: &Context<'_>) {
        self.has_work = false;
        self.waker = Some(cx.waker().clone());
    }

    /// Records that there is work for the driver.
    pub(crate) fn note_work(&mut self) {
        self.has_work = true;
    }

    /// Called when a turn ends. Returns the driver's waker if there is work for the driver. Further calls return `None`
    /// until the driver's next turn, since one wake-up is enough.
    pub(crate) fn take(&mut self) -> Option<Waker> {
        if self.has_work { self.waker.take() } else { None }
    }

    #[cfg(test)]
    pub(crate) fn is_made(&self) -> bool {
        self.has_work && self.waker.is_none()
    }
}
