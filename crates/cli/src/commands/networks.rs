//! The privileges for networks of our own.

use rexmit::tun::{enter_user_namespace, may_make_networks};

use crate::failure::Outcome;

/// Makes namespaces and the devices in them possible, without privileges where the system gives its
/// users namespaces. To be called before any thread is started.
pub(super) fn permit() -> Outcome {
    if !may_make_networks() {
        enter_user_namespace()?;
    }
    Ok(())
}
