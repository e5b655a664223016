//! The extension module `rexmit._rexmit`: SCTP without I/O for Python, and the laboratory.
//!
//! The package around it, in `python/rexmit`, has the asyncio transport, the classes of events and errors, and the
//! type stubs; `docs/python.md` shows how to use it.
//!
//! | file | what is in it |
//! |---|---|
//! | `endpoint` | the class `Endpoint` |
//! | `config` | profiles and settings |
//! | `convert` | times, addresses, payloads and numbers |
//! | `errors` | exceptions |
//! | `events` | events, as the classes of `rexmit._events` |
//! | `lab` | studies and simulations |
//! | `identity` | certificates, and which of them are trusted |
//! | `statistics` | counters, as the classes of `rexmit._statistics` |

mod config;
mod convert;
mod endpoint;
mod errors;
mod events;
mod identity;
mod lab;
mod statistics;

use pyo3::prelude::*;

/// The endpoint without I/O, whom it trusts, the names of the profiles, and what `rexmit.lab` wraps.
#[pymodule(gil_used = false)]
mod _rexmit {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::endpoint::Endpoint;
    #[pymodule_export]
    use crate::identity::{Identity, Trust};
    #[pymodule_export]
    use crate::lab::{
        LabResults, LabStudy, Sweep, Table, advice_study, analyse_capture, execute_run, program,
        read_trace, simulate, study_names,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("PROFILES", crate::config::names(module.py())?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
