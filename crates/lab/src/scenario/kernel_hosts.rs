//! The hosts of a kernel, as in scenario files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The hosts at both ends of a flow: namespaces of a kernel.
///
/// In files, this is the name of the kernel, or a table with settings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "Form")]
pub struct KernelHosts {
    /// The kernel: `linux-6.12` or `linux-6.1`.
    pub kernel: String,
    /// Settings of both ends by their names, such as `net.ipv4.tcp_congestion_control`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, String>,
}

/// The forms in files.
#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Name(String),
    Table(Table),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kernel: String,
    #[serde(default)]
    sysctl: BTreeMap<String, Setting>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Setting {
    Number(i64),
    Text(String),
}

impl From<Form> for KernelHosts {
    fn from(form: Form) -> Self {
        let text = |setting| match setting {
            Setting::Number(number) => number.to_string(),
            Setting::Text(text) => text,
        };
        match form {
            Form::Name(kernel) => Self { kernel, sysctl: BTreeMap::new() },
            Form::Table(Table { kernel, sysctl }) => {
                let sysctl = sysctl.into_iter().map(|(name, value)| (name, text(value)));
                Self { kernel, sysctl: sysctl.collect() }
            }
        }
    }
}
