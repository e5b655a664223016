//! `rexmit proxy` in separate networks of the tests: ordinary clients beyond an emulated link, an ordinary service, and
//! the proxy between them.

mod carrying;
mod killing;
#[path = "../../../rexmit/tests/common/netns.rs"]
#[allow(dead_code)]
mod netns;
mod place;
mod setup;
mod ssh;
