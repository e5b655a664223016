//! The changes for one proxy, in order: printed, or applied and undone.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::config::{DEVICE_PREFIX, Firewall, SetupConfig};
use super::error::SetupError;
use super::rules::{Found, Rules};
use super::{host, input, iptables, nft};
use crate::tun::TunConfig;

/// The longest name of an interface.
const MAX_NAME_BYTES: usize = 15;

/// The changes that direct clients to the stack of one proxy.
#[derive(Debug)]
pub struct Setup {
    config: SetupConfig,
    /// Whether the address belongs to this machine, so that the destination of packets is translated.
    is_translated: bool,
    /// The interfaces at which clients' packets arrive and forwarding has to be enabled.
    guarded: Vec<String>,
}

/// One step of the setup or its removal.
enum Step {
    Run(Vec<String>),
    Write(PathBuf, &'static str),
}

/// An applied setup, which is removed when this is dropped.
#[derive(Debug)]
pub struct AppliedSetup {
    listen: SocketAddr,
    firewall: Firewall,
    is_removed: bool,
}

impl Setup {
    /// Determines the changes that this machine needs; changes nothing.
    ///
    /// # Errors
    /// Why the clients cannot be directed to the stack.
    pub fn plan(config: SetupConfig) -> Result<Self, SetupError> {
        check(&config)?;
        let listen = config.listen;
        let owner = host::owner(listen.ip())?.filter(|name| *name != config.device);
        let is_translated = owner.is_some();
        let mut setup = Self { config, is_translated, guarded: Vec::new() };
        setup.guarded = setup.to_be_guarded(owner)?;
        Ok(setup)
    }

    /// The interfaces on which forwarding is disabled, or was enabled for another proxy only.
    fn to_be_guarded(&self, owner: Option<String>) -> Result<Vec<String>, SetupError> {
        let is_ipv4 = self.config.listen.is_ipv4();
        let is_on_by_default = host::is_on(&host::forwarding(is_ipv4, "all"))?;
        if !is_ipv4 {
            return if is_on_by_default { Ok(Vec::new()) } else { Err(SetupError::Ipv6Forwarding) };
        }
        // A user without permission to list rules gets an empty list.
        let found = find_all(self.config.listen).unwrap_or_default();
        let given = &self.config.interfaces;
        let interfaces = if given.is_empty() { Vec::from_iter(owner) } else { given.clone() };
        if interfaces.is_empty() && !is_on_by_default {
            return Err(SetupError::WhichInterface(self.config.listen.ip()));
        }
        let mut guarded = Vec::new();
        for interface in interfaces {
            host::check_interface(&interface)?;
            let is_guarded =
                found.guarded_by_others.contains(&interface) || found.guarded.contains(&interface);
            if is_guarded || !host::is_on(&host::forwarding(is_ipv4, &interface))? {
                if is_on_by_default && !is_guarded {
                    return Err(SetupError::ForwardingRefused(interface));
                }
                guarded.push(interface);
            }
        }
        Ok(guarded)
    }

    fn firewall(&self) -> Result<Firewall, SetupError> {
        let is_ipv4 = self.config.listen.is_ipv4();
        let either = [Firewall::Nft, Firewall::Iptables];
        let is_there = |firewall: &Firewall| host::is_installed(*firewall, is_ipv4);
        self.config
            .firewall
            .or_else(|| either.into_iter().find(is_there))
            .ok_or(SetupError::NoFirewall)
    }

    /// The device's name.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.config.device
    }

    /// The address for the stack.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        if self.is_translated { self.config.network.1 } else { self.config.listen.ip() }
    }

    /// The configuration of the TUN device.
    #[must_use]
    pub fn tun(&self) -> TunConfig {
        let prefix = self.config.prefix;
        let (ipv4, ipv6) = match self.config.network.0 {
            IpAddr::V4(address) => (Some((address, prefix)), Vec::new()),
            IpAddr::V6(address) => (None, vec![(address, prefix)]),
        };
        let name = Some(self.config.device.clone());
        TunConfig { name, mtu: self.config.mtu, ipv4, ipv6, ..TunConfig::default() }
    }

    fn rules(&self) -> Rules<'_> {
        Rules {
            listen: self.config.listen,
            device: &self.config.device,
            translated: self.is_translated.then_some(self.config.network.1),
            guarded: &self.guarded,
        }
    }

    /// The steps to take once the device exists.
    fn steps(&self, firewall: Firewall) -> Vec<Step> {
        let listen = self.config.listen;
        let device = &self.config.device;
        let mut steps = Vec::new();
        if !self.is_translated {
            let route = format!("ip route replace {} dev {device}", listen.ip());
            steps.push(Step::Run(words(&route)));
        }
        let rules = self.rules();
        let add = match firewall {
            Firewall::Nft => nft::add(&rules),
            Firewall::Iptables => iptables::add(&rules),
        };
        steps.extend(add.into_iter().map(Step::Run));
        // After the rules, which prevent that anything else is forwarded.
        let switch = |name: &str| Step::Write(host::forwarding(listen.is_ipv4(), name), "1");
        steps.push(switch(device));
        steps.extend(self.guarded.iter().map(|name| switch(name)));
        steps
    }

    /// A shell script for root that makes the changes, for a proxy that is then started by a user without
    /// privileges. The commands that undo them are in it as comments.
    ///
    /// # Errors
    /// If neither `nft` nor `iptables` is installed.
    pub fn script(&self) -> Result<String, SetupError> {
        let firewall = self.firewall()?;
        let (kernel, prefix, device) =
            (self.config.network.0, self.config.prefix, &self.config.device);
        let user = rustix::process::geteuid().as_raw();
        let make = [
            format!("ip tuntap add dev {device} mode tun user {user}"),
            format!("ip address add {kernel}/{prefix} dev {device}"),
            format!("ip link set {device} mtu {} up", self.config.mtu),
        ];
        let mut steps: Vec<_> = make.iter().map(|line| Step::Run(words(line))).collect();
        steps.extend(self.steps(firewall));
        let listen = self.config.listen;
        let off = |name: &String| Step::Write(host::forwarding(listen.is_ipv4(), name), "0");
        let mut undo: Vec<_> = self.guarded.iter().map(off).collect();
        undo.extend(match firewall {
            Firewall::Nft => nft::delete(listen).into_iter().map(Step::Run).collect::<Vec<_>>(),
            Firewall::Iptables => {
                iptables::delete(&self.rules()).into_iter().map(Step::Run).collect()
            }
        });
        undo.push(Step::Run(words(&format!("ip link delete {device}"))));
        let mut script = format!("# Brings the clients of {listen} to the proxy (as root):\n");
        for step in steps {
            let _ = writeln!(script, "{}", step.line());
        }
        script.push_str("# Undoes it:\n");
        for step in undo {
            let _ = writeln!(script, "#   {}", step.line());
        }
        Ok(script)
    }

    /// Whether this process may [`apply`](Self::apply) it.
    ///
    /// # Errors
    /// [`SetupError::Permission`], or if neither `nft` nor `iptables` is installed.
    pub fn check_permission(&self) -> Result<(), SetupError> {
        host::check_permission()?;
        self.firewall().map(drop)
    }

    /// Returns an error if packets would bypass an input filter. That is not so for an address that is routed here: the
    /// filter never applied to its packets.
    fn check_input_filter(&self) -> Result<(), SetupError> {
        if !self.is_translated || self.config.ignores_input_filter {
            return Ok(());
        }
        match input::first_filter(self.config.listen) {
            Some(rule) => Err(SetupError::InputFilter { rule }),
            None => Ok(()),
        }
    }

    /// Applies the changes. The device must exist. Changes left over from an earlier proxy at the same
    /// address are removed first.
    ///
    /// # Errors
    /// The error of the change that failed; earlier changes are undone.
    pub fn apply(&self) -> Result<AppliedSetup, SetupError> {
        let firewall = self.firewall()?;
        self.check_input_filter()?;
        remove(self.config.listen)?;
        // From here on, whatever fails is undone.
        let applied = AppliedSetup { listen: self.config.listen, firewall, is_removed: false };
        for step in self.steps(firewall) {
            step.take()?;
        }
        Ok(applied)
    }
}

impl AppliedSetup {
    /// Removes the setup, and reports errors, which dropping it does not.
    ///
    /// # Errors
    /// The rules and settings that could not be removed.
    pub fn remove(mut self) -> Result<(), SetupError> {
        self.is_removed = true;
        remove_with(self.firewall, self.listen).map(drop)
    }
}

impl Drop for AppliedSetup {
    fn drop(&mut self) {
        if !self.is_removed {
            // The error cannot be reported; the next start tries again.
            let _ = remove_with(self.firewall, self.listen);
        }
    }
}

fn find(firewall: Firewall, listen: SocketAddr) -> Result<Found, SetupError> {
    match firewall {
        Firewall::Nft => nft::find(listen),
        Firewall::Iptables => iptables::find(listen),
    }
}

/// The existing rules of all proxies, of both programs.
fn find_all(listen: SocketAddr) -> Result<Found, SetupError> {
    let mut all = Found::default();
    for firewall in [Firewall::Nft, Firewall::Iptables] {
        if host::is_installed(firewall, listen.is_ipv4()) {
            let found = find(firewall, listen)?;
            all.is_there |= found.is_there;
            all.guarded.extend(found.guarded);
            all.guarded_by_others.extend(found.guarded_by_others);
        }
    }
    Ok(all)
}

/// Removes rules that a proxy at `listen` left over, and disables forwarding again if that proxy had enabled
/// it and no other needs it. Returns whether there was anything to remove.
///
/// # Errors
/// The rules and settings that could not be removed.
pub fn remove(listen: SocketAddr) -> Result<bool, SetupError> {
    let mut has_removed = false;
    for firewall in [Firewall::Nft, Firewall::Iptables] {
        if host::is_installed(firewall, listen.is_ipv4()) {
            has_removed |= remove_with(firewall, listen)?;
        }
    }
    Ok(has_removed)
}

/// As [`remove`], for the rules of one program.
pub(super) fn remove_with(firewall: Firewall, listen: SocketAddr) -> Result<bool, SetupError> {
    let found = find(firewall, listen)?;
    if !found.is_there {
        return Ok(false);
    }
    let is_ipv4 = listen.is_ipv4();
    let others = find_all(listen)?.guarded_by_others;
    // If it was switched on for all interfaces meanwhile, it is needed here, too.
    let is_on_by_default = host::is_on(&host::forwarding(is_ipv4, "all"))?;
    for interface in &found.guarded {
        if is_on_by_default || others.contains(interface) {
            continue;
        }
        match host::write(&host::forwarding(is_ipv4, interface), "0") {
            Err(error) if !host::is_absent(&error) => return Err(error),
            _ => {}
        }
    }
    match firewall {
        Firewall::Nft => nft::delete(listen).iter().try_for_each(|it| host::run(it).map(drop))?,
        Firewall::Iptables => iptables::delete_found(listen)?,
    }
    Ok(true)
}

fn check(config: &SetupConfig) -> Result<(), SetupError> {
    let SetupConfig { listen, device, network, .. } = config;
    host::check_place(*listen)?;
    if network.0.is_ipv4() != listen.is_ipv4() || network.1.is_ipv4() != listen.is_ipv4() {
        return Err(SetupError::Families { listen: *listen, network: network.0 });
    }
    let is_plain = device.chars().all(|c| c.is_ascii_alphanumeric());
    if !device.starts_with(DEVICE_PREFIX) || !is_plain || device.len() > MAX_NAME_BYTES {
        return Err(SetupError::DeviceName(device.clone()));
    }
    Ok(())
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(ToOwned::to_owned).collect()
}

impl Step {
    fn take(&self) -> Result<(), SetupError> {
        match self {
            Self::Run(arguments) => host::run(arguments).map(drop),
            Self::Write(switch, value) => host::write(switch, value),
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Run(arguments) => host::shell(arguments),
            Self::Write(switch, value) => format!("echo {value} > {}", switch.display()),
        }
    }
}
