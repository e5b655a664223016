//! Recovery settings as text. With the feature `settings`.

use rexmit_core::settings::{SettingsError, changed};

use super::AssociationConfig;

impl AssociationConfig {
    /// Changes single settings of [`recovery`](Self#structfield.recovery), by a text in TOML with the names and values that the
    /// table `recovery` has in study files. Tables are merged with what is set already, and other values are replaced.
    ///
    /// # Errors
    /// An unknown name, a wrong value, values that do not fit together, settings of TCP, and a text of more than
    /// [`MAX_BYTES`](rexmit_core::settings::MAX_BYTES) or that is no TOML. Then nothing changes.
    ///
    /// ```
    /// # use rexmit_sctp::AssociationConfig;
    /// let mut config = AssociationConfig::rfc9260();
    /// config.change_recovery("rto.min = '200ms'")?;
    /// assert_eq!(config.recovery.rto.min.as_millis(), 200);
    /// let error = config.change_recovery("rto.mim = '100ms'").unwrap_err();
    /// assert_eq!(error.to_string(), "line 1: rto.mim: unknown field `mim`; did you mean `min`?");
    /// # Ok::<(), rexmit_core::settings::SettingsError>(())
    /// ```
    pub fn change_recovery(&mut self, text: &str) -> Result<(), SettingsError> {
        let refused = |what: String| SettingsError::Mistake { line: None, setting: None, what };
        let changed = changed(&self.recovery, text)?;
        if changed.tcp != self.recovery.tcp || changed.thin.tcp != self.recovery.thin.tcp {
            return Err(refused("tcp and thin.tcp are settings of TCP: SCTP ignores them".into()));
        }
        let valid = changed.validate_for_sctp();
        valid.map_err(|why| refused(format!("these settings do not fit together: {why}")))?;
        self.recovery = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::recovery::{LossDetection, PROFILES, RecoveryConfig};

    fn with(base: &AssociationConfig, text: &str) -> Result<RecoveryConfig, String> {
        let mut config = base.clone();
        let changed = config.change_recovery(text).map_err(|error| error.to_string());
        assert!(changed.is_ok() || config.recovery == base.recovery, "{text}");
        changed.map(|()| config.recovery)
    }

    #[test]
    fn no_profile_changes_by_a_text_without_settings() {
        for (name, _) in PROFILES {
            let profile = AssociationConfig::profile(name).expect("it is listed");
            assert_eq!(with(&profile, "# nothing\n").as_ref(), Ok(&profile.recovery), "{name}");
        }
    }

    #[test]
    fn names_are_those_of_the_configuration_and_errors_say_why() {
        let base = AssociationConfig::rfc9260();
        let rack = with(&base, "loss_detection = 'rack'\n[thin]\nrto_min = '200ms'").unwrap();
        let expected = base.recovery.clone().loss_detection(LossDetection::Rack);
        let thin = base.recovery.thin.rto_min(Some(Duration::from_millis(200)));
        assert_eq!(rack, expected.with_thin(thin));
        for (text, expected) in [
            ("rto.mim = '200ms'", "line 1: rto.mim: unknown field `mim`; did you mean `min`?"),
            ("rto.min = '2min'", "these settings do not fit together: RTO.Min is above RTO.Max"),
            ("tcp.limited_transmit = true", "tcp and thin.tcp are settings of TCP"),
            ("thin.tcp.no_delay = true", "tcp and thin.tcp are settings of TCP"),
            ("loss_detection = 'duplicate_acks'", "SCTP has no duplicate ACKs to count"),
        ] {
            let error = with(&base, text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn every_table_refuses_an_unknown_name() {
        let base = AssociationConfig::interactive();
        for table in [
            "",
            "rto.",
            "spurious.",
            "thin.",
            "thin.sctp.",
            "thin.delayed_copies.",
            "thin.copy_budget.",
            "sctp.",
        ] {
            let error = with(&base, &format!("{table}unknown = 1")).unwrap_err();
            assert!(error.contains("unknown"), "{table}: {error}");
        }
    }

    #[test]
    fn what_is_on_can_be_off() {
        let base = AssociationConfig::interactive();
        let on = "sctp.potentially_failed_max_retrans = 0\n\
            thin.deadline = { within = '80ms', probability = 0.99 }";
        let on = base.clone().recovery(with(&base, on).unwrap());
        assert_eq!(on.recovery.sctp.potentially_failed_max_retrans, Some(0));
        let shorter = with(&on, "thin.deadline.within = '50ms'").unwrap();
        let within = shorter.thin.deadline.map(|deadline| deadline.within());
        assert_eq!(within, Some(Duration::from_millis(50)));
        let off = "sctp.potentially_failed_max_retrans = 'off'\nthin.deadline = 'off'";
        assert_eq!(with(&on, off), Ok(base.recovery));
    }
}
