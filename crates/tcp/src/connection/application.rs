//! The application's view of a connection.

use super::Context;
use crate::event::{CloseReason, Event};

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Application {
    /// It is gone: data that still arrives has no reader.
    pub(super) is_gone: bool,
    /// It was told that the connection has ended.
    is_end_told: bool,
}

impl Application {
    /// Tells it, once, that the connection has ended.
    pub(super) fn tell_end(&mut self, cx: &mut Context<'_>, reason: CloseReason) {
        if !std::mem::replace(&mut self.is_end_told, true) {
            cx.emit(Event::Closed(reason));
        }
    }
}
