//! Profiles and settings.

use std::num::NonZeroU16;
use std::time::Duration;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use rexmit_recovery::PROFILES;
use rexmit_sctp::recovery::CopyBudget;
use rexmit_sctp::{AssociationConfig, Scheduling};

use crate::convert::{Real, Unsigned, Whole, deadline, duration, number};
use crate::errors::UnknownProfileError;

/// The names of the profiles.
pub(crate) fn names(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, PROFILES.iter().map(|(name, _)| *name))
}

/// The configuration with the profile called `name`.
fn profile(name: &Bound<'_, PyAny>) -> PyResult<AssociationConfig> {
    let name = name.cast::<PyString>().map_err(|_| {
        PyTypeError::new_err("profile must be a name such as 'interactive', or a rexmit.Profile")
    })?;
    let name = name.to_string_lossy();
    AssociationConfig::profile(&name).ok_or_else(|| {
        let likeness = |other: &str| strsim::jaro(&name, other);
        let names = PROFILES.iter().map(|(name, _)| *name);
        let nearest = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).unwrap_or_default();
        let text = format!(
            "there is no profile {name:?}; did you mean {nearest:?}? rexmit.PROFILES has all"
        );
        UnknownProfileError::new_err(text)
    })
}

/// The stream schedulers by name.
const SCHEDULERS: [(&str, Scheduling); 6] = [
    ("round-robin", Scheduling::RoundRobin),
    ("round-robin-per-packet", Scheduling::RoundRobinPerPacket),
    ("first-come-first-served", Scheduling::FirstComeFirstServed),
    ("priority", Scheduling::Priority),
    ("fair-bandwidth", Scheduling::FairBandwidth),
    ("weighted-fair-queueing", Scheduling::WeightedFairQueueing),
];

/// The stream scheduler called `name`.
pub(crate) fn scheduling(name: &Bound<'_, PyAny>) -> PyResult<Scheduling> {
    let name = name.cast::<PyString>().map_err(|_| {
        PyTypeError::new_err("scheduling must be a name such as 'priority', or a rexmit.Scheduling")
    })?;
    let name = name.to_string_lossy();
    let found = SCHEDULERS.iter().find(|(known, _)| *known == name);
    found.map(|(_, scheduling)| *scheduling).ok_or_else(|| {
        let names = SCHEDULERS.map(|(name, _)| name).join(", ");
        PyValueError::new_err(format!("there is no scheduling {name:?}; there are {names}"))
    })
}

/// One setting of a `rexmit.Config`; `None` leaves the default.
fn setting<'py, T>(config: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<T>>
where
    T: FromPyObjectOwned<'py>,
{
    let value = config.getattr(name)?;
    if value.is_none() {
        return Ok(None);
    }
    value.extract::<T>().map(Some).map_err(|error| {
        let error: PyErr = error.into();
        let text = format!("{name}: {}", error.value(config.py()));
        if error.is_instance_of::<PyTypeError>(config.py()) {
            PyTypeError::new_err(text)
        } else {
            PyValueError::new_err(text)
        }
    })
}

/// A setting that is a number from 0 on.
fn whole<T: Unsigned>(config: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<T>> {
    setting::<Whole>(config, name)?.map(|it| number(name, it.0)).transpose()
}

/// A time in seconds, of which 0 is "off".
fn time(config: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Option<Duration>>> {
    let Some(seconds) = setting::<Real>(config, name)? else { return Ok(None) };
    let time = duration(name, seconds)?;
    Ok(Some((!time.is_zero()).then_some(time)))
}

macro_rules! settings {
    ($read:ident, $from:ident, $to:ident: $($name:ident)*) => {
        $(if let Some(value) = $read($from, stringify!($name))? {
            $to = $to.$name(value);
        })*
    };
}

/// The budget of copies; `None` leaves that of the profile.
fn budget(config: &Bound<'_, PyAny>) -> PyResult<Option<CopyBudget>> {
    let budget = config.getattr("budget")?;
    if budget.is_none() {
        return Ok(None);
    }
    let class = config.py().import("rexmit._config")?.getattr("Budget")?;
    if !budget.is_instance(&class)? {
        let text = format!("budget must be a rexmit.Budget, not {}", budget.get_type().name()?);
        return Err(PyTypeError::new_err(text));
    }
    let percent = |name: &str| {
        let share = setting::<Whole>(&budget, name)?;
        share.map_or(Ok(None), |Whole(share)| {
            let text = format!(
                "the {name} of a budget are {share}; they are 1 to 65535 percent, or None: no limit"
            );
            let share = u16::try_from(share).ok().and_then(NonZeroU16::new);
            share.map(Some).ok_or_else(|| PyValueError::new_err(text))
        })
    };
    Ok(Some(CopyBudget::percent(percent("packets")?, percent("bytes")?)))
}

/// A profile with the settings of a `rexmit.Config`.
pub(crate) fn association(
    name: &Bound<'_, PyAny>,
    config: Option<&Bound<'_, PyAny>>,
) -> PyResult<AssociationConfig> {
    // The sockets of Python's event loops are read without the ECN field.
    let mut association = profile(name)?.ecn(false);
    let Some(config) = config else { return Ok(association) };
    let class = config.py().import("rexmit._config")?.getattr("Config")?;
    if !config.is_instance(&class)? {
        let text = format!("config must be a rexmit.Config, not {}", config.get_type().name()?);
        return Err(PyTypeError::new_err(text));
    }
    settings! { whole, config, association:
        outbound_streams max_inbound_streams max_message_bytes max_packet_bytes send_buffer_bytes
        receive_buffer_bytes max_init_retransmits
    }
    settings! { setting, config, association: report_sent report_acknowledged interleaving }
    let name = config.getattr("scheduling")?;
    if !name.is_none() {
        association.streams.scheduling = scheduling(&name)?;
    }
    settings! { time, config, association: dead_after heartbeat_interval }
    if let Some(text) = setting::<String>(config, "recovery")? {
        let refused = |error| PyValueError::new_err(format!("recovery: {error}"));
        association.change_recovery(&text).map_err(refused)?;
    }
    let (within, probability) = (setting(config, "within")?, setting(config, "probability")?);
    if let Some(deadline) = deadline(within, probability)? {
        association.recovery.thin.deadline = Some(deadline);
    }
    if let Some(budget) = budget(config)? {
        association.recovery.thin.copy_budget = budget;
    }
    Ok(association)
}
