//! The application's view of a connection.

use super::Context;
use crate::event::{CloseReason, Event};

/// The application's view of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Application {
    /// Whether the application has closed the connection: nothing reads received data any more.
    pub(super) is_gone: bool,
    /// Whether the end of the connection was reported to the application.
    is_end_told: bool,
}

impl Application {
    /// Reports the end of the connection to the application, once.
    pub(super) fn tell_end(&mut self, cx: &mut Context<'_>, reason: CloseReason) {
        if !std::mem::replace(&mut self.is_end_told, true) {
            cx.emit(Event::Closed(reason));
        }
    }
}
