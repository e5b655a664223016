//! Waking the driver, once for all work that has accumulated.

use std::task::{Context, Waker};

/// Whether the driver has work, and how to reach it.
#[derive(Debug, Default)]
pub(crate) struct DriverCall {
    waker: Option<Waker>,
    has_work: bool,
}

impl DriverCall {
    /// The driver's turn begins: it looks at everything that was there before.
    pub(crate) fn register(&mut self, cx: &Context<'_>) {
        self.has_work = false;
        self.waker = Some(cx.waker().clone());
    }

    /// Records that there is work for the driver.
    pub(crate) fn note_work(&mut self) {
        self.has_work = true;
    }

    /// The turn ends: how to wake up the driver, if it has work. Until its next turn, in which it
    /// looks at everything, it need not be woken up again.
    pub(crate) fn take(&mut self) -> Option<Waker> {
        if self.has_work { self.waker.take() } else { None }
    }

    #[cfg(test)]
    pub(crate) fn is_made(&self) -> bool {
        self.has_work && self.waker.is_none()
    }
}
