//! One stream of messages over one link, compared between systems: the few settings of the page of `rexmit lab serve`.
//!
//! [`Settings`] are plain values within the limits of [`CONTROLS`]. They become a [`Study`](crate::Study) by way of the text
//! of its file, and [`Settings::read`] finds them again in such a file. [`page`](crate::page::explore) has the page.

mod limits;
mod read;
mod settings;
mod text;

pub use limits::{CONTROLS, Control, MAX_MESSAGES, MAX_PAYLOAD_BYTES, MAX_SEEDS};
pub use read::NotReadable;
pub use settings::{Rhythm, Settings, SettingsError, systems};
pub use text::NAME;

#[cfg(test)]
mod tests;
