//! A flow's overrides of its recovery profile.

use rexmit_sctp::recovery::RecoveryConfig;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

/// Some fields of a [`RecoveryConfig`], which replace those of a profile.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Overrides(Map<String, Value>);

impl Overrides {
    /// Whether nothing is replaced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `profile` with these fields replaced.
    ///
    /// # Errors
    /// If a field does not exist, or its value is invalid.
    pub fn apply(&self, profile: &RecoveryConfig) -> Result<RecoveryConfig, String> {
        let mut merged = serde_json::to_value(profile).map_err(|error| error.to_string())?;
        merge(&mut merged, &self.0);
        serde_json::from_value(merged).map_err(|error| error.to_string())
    }
}

/// Merges `overrides` into `value`: tables are merged, all other values are replaced.
fn merge(value: &mut Value, overrides: &Map<String, Value>) {
    let Value::Object(fields) = value else {
        *value = Value::Object(overrides.clone());
        return;
    };
    for (name, new) in overrides {
        match (fields.get_mut(name), new) {
            (Some(old), Value::Object(new)) => merge(old, new),
            _ => drop(fields.insert(name.clone(), new.clone())),
        }
    }
}

impl<'de> Deserialize<'de> for Overrides {
    /// Parses fields of a [`RecoveryConfig`]; unknown fields are errors.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let overrides = Self(Map::deserialize(from)?);
        overrides.apply(&RecoveryConfig::rfc9260()).map_err(de::Error::custom)?;
        Ok(overrides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexmit_sctp::recovery::{CmtConfig, Deadline, PROFILES, SpuriousResponse, TCP_PROFILES};
    use std::time::Duration;

    fn overrides(json: &str) -> Result<Overrides, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn every_profile_survives_a_file_and_its_times_are_words() {
        let names = PROFILES.iter().map(|(name, _)| RecoveryConfig::profile(name));
        let of_tcp = TCP_PROFILES.iter().map(|(name, _)| RecoveryConfig::tcp_profile(name));
        for profile in names.chain(of_tcp).map(|profile| profile.expect("it is listed")) {
            let text = serde_json::to_string(&profile).unwrap();
            assert!(!text.contains("nanos"), "{text}");
            assert_eq!(serde_json::from_str::<RecoveryConfig>(&text).unwrap(), profile);
            assert_eq!(Overrides::default().apply(&profile), Ok(profile));
        }
    }

    #[test]
    fn only_what_is_named_is_replaced() {
        let lksctp = RecoveryConfig::profile("lksctp").unwrap();
        let json = r#"{"thin": {"linear_timeouts": 6, "rto_min": "200ms"}, "missing_reports": 4}"#;
        let mut expected = lksctp.clone();
        expected.thin.linear_timeouts = std::num::NonZeroU8::new(6);
        expected.thin.rto_min = Some(Duration::from_millis(200));
        expected.missing_reports = 4;
        assert_eq!(overrides(json).unwrap().apply(&lksctp), Ok(expected));
    }

    #[test]
    fn tables_have_defaults_and_can_be_off() {
        let redundant = RecoveryConfig::interactive_redundant();
        let json = r#"{"thin": {"bundling": "off", "probe_timer": "off",
            "delayed_copies": {"of_retransmissions": {"copies": 2}}},
            "sctp": {"cmt": {"cwnd_update": true}}, "spurious": {"duplicates": "count", "f_rto": "undo"}}"#;
        let applied = overrides(json).unwrap().apply(&redundant).unwrap();
        assert_eq!((applied.thin.bundling, applied.thin.probe_timer), (None, None));
        let copies = applied.thin.delayed_copies.of_retransmissions.unwrap();
        assert_eq!((copies.copies.get(), copies.interval), (2, Duration::from_millis(1)));
        assert_eq!(applied.sctp.cmt, Some(CmtConfig::default().cwnd_update(true)));
        let responses = (applied.spurious.duplicates, applied.spurious.f_rto);
        assert_eq!(responses, (Some(SpuriousResponse::Count), Some(SpuriousResponse::Undo)));
        let refused = |json: &str| overrides(json).unwrap_err();
        let unknown = refused(r#"{"thin": {"bundling": {"packet": 1}}}"#);
        assert!(
            unknown.contains("unknown field `packet`, expected `packets` or `bytes`"),
            "{unknown}"
        );
        assert!(refused(r#"{"thin": {"bundling": "on"}}"#).contains("neither a table nor `off`"));
        assert!(refused(r#"{"thin": {"bundling": {"packets": 0}}}"#).contains("nonzero"));
    }

    #[test]
    fn a_deadline_is_a_time_and_a_probability() {
        let rfc9260 = RecoveryConfig::rfc9260();
        let deadline = |probability: &str| {
            let json = format!(
                r#"{{"thin": {{"deadline": {{"within": "150ms", "probability": {probability}}}}}}}"#
            );
            overrides(&json).and_then(|overrides| overrides.apply(&rfc9260))
        };
        let applied = deadline("0.999").unwrap();
        let expected = Deadline::new(Duration::from_millis(150), 0.999);
        assert_eq!(applied.thin.deadline, Some(expected));
        let text = serde_json::to_string(&applied).unwrap();
        assert_eq!(serde_json::from_str::<RecoveryConfig>(&text).unwrap(), applied);
        for wrong in ["1.0", "-0.1"] {
            assert!(deadline(wrong).unwrap_err().contains("from 0 to 1"), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_field_is_refused_with_the_known_ones() {
        let refused = |json: &str, expected: &str| {
            let error = overrides(json).unwrap_err();
            assert!(error.contains(expected), "{json}: {error}");
        };
        refused(
            r#"{"thin": {"linear": 6}}"#,
            "unknown field `linear`, expected one of `test`, `rto",
        );
        refused(r#"{"thim": {}}"#, "unknown field `thim`, expected one of `rto`, `timer_restart`");
        refused(r#"{"rto": {"min": "200"}}"#, "`200` needs one of the units ns, us, ms, s");
        refused(r#"{"congestion": "reno"}"#, "unknown variant `reno`, expected one of `rfc9260`");
    }
}
