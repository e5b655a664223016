//! Changes of a configuration as text in TOML, such as `rto.min = "200ms"`. With the feature `settings`.
//!
//! [`changed`] is for texts of an application. The rest is shared with the study files of this project, and follows no
//! version.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// The most bytes of a text of settings.
pub const MAX_BYTES: usize = 16 * 1024;

/// The most characters of a name or message that are shown.
const MAX_SHOWN: usize = 400;

/// The largest number of alternatives that are all listed.
const FEW: usize = 12;

/// Why a text of settings is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SettingsError {
    /// The text has this many bytes, more than [`MAX_BYTES`].
    TooLong(usize),
    /// The text is no TOML, or it has an unknown name or a wrong value.
    Mistake {
        /// The line, from 1; `None` if the mistake is in no single one.
        line: Option<usize>,
        /// The name of the setting, with dots; `None` if the text is no TOML.
        setting: Option<String>,
        /// What is wrong, and what was probably meant.
        what: String,
    },
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => {
                write!(f, "the settings have {bytes} bytes; at most {MAX_BYTES} are allowed")
            }
            Self::Mistake { line, setting, what } => {
                line.map_or(Ok(()), |line| write!(f, "line {line}: "))?;
                setting.as_ref().map_or(Ok(()), |setting| write!(f, "{setting}: "))?;
                f.write_str(what)
            }
        }
    }
}

impl std::error::Error for SettingsError {}

/// `base` with the settings of `text`, in TOML, in place of its own: tables are merged, all other values are replaced.
///
/// # Errors
/// A text that is too long or is no TOML, an unknown name, or a wrong value.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Lamp {
///     brightness: u32,
///     colour: u32,
/// }
///
/// let lamp = Lamp { brightness: 800, colour: 2700 };
/// let dim = rexmit_core::settings::changed(&lamp, "brightness = 100")?;
/// assert_eq!((dim.brightness, dim.colour), (100, 2700));
/// let error = rexmit_core::settings::changed(&lamp, "color = 4000").err().unwrap();
/// assert_eq!(error.to_string(), "line 1: color: unknown field `color`; did you mean `colour`?");
/// # Ok::<(), rexmit_core::settings::SettingsError>(())
/// ```
pub fn changed<T: Serialize + DeserializeOwned>(base: &T, text: &str) -> Result<T, SettingsError> {
    if text.len() > MAX_BYTES {
        return Err(SettingsError::TooLong(text.len()));
    }
    let refused = |error: &toml::de::Error, table: Option<&DeTable<'_>>| {
        // Positions behind the text are those of `base`.
        let at = error.span().map(|span| span.start).filter(|at| *at <= text.len());
        let before = at.map(|at| &text.as_bytes()[..at]);
        SettingsError::Mistake {
            line: before.map(|text| text.iter().filter(|&&byte| byte == b'\n').count() + 1),
            setting: at.zip(table).and_then(|(at, table)| name_at(table, at)).map(|it| shown(&it)),
            what: shown(&explained(error.message())),
        }
    };
    let over = DeTable::parse(text).map_err(|error| refused(&error, None))?;
    let mut below = " ".repeat(text.len() + 1);
    let unwritable = |error: &dyn fmt::Display| SettingsError::Mistake {
        line: None,
        setting: None,
        what: format!("the present settings cannot be written as text: {error}"),
    };
    let written = toml::to_string(base).map_err(|error| unwritable(&error))?;
    below.push_str(&written);
    let mut merged = DeTable::parse(&below).map_err(|error| unwritable(&error))?;
    if let Some((name, at)) = array_for_another(merged.get_ref(), over.get_ref()) {
        let line = text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
        let what = "an array; no array is a value of it".to_owned();
        let setting = Some(shown(&name));
        return Err(SettingsError::Mistake { line: Some(line), setting, what });
    }
    merge(merged.get_mut(), over.get_ref());
    let value = Spanned::new(merged.span(), DeValue::Table(merged.get_ref().clone()));
    let changed = T::deserialize(ValueDeserializer::from(value));
    changed.map_err(|error| refused(&error, Some(merged.get_ref())))
}

/// The first array in `over` where `base` has none, by its dotted name and place. A derived `Deserialize` would take it for a
/// structure, by position, with defaults for what is missing.
fn array_for_another(base: &DeTable<'_>, over: &DeTable<'_>) -> Option<(String, usize)> {
    over.iter().find_map(|(key, value)| {
        let name = key.get_ref().as_ref();
        let below = base.get(name).map(Spanned::get_ref);
        match (value.get_ref(), below) {
            (DeValue::Array(_), Some(DeValue::Array(_))) => None,
            (DeValue::Array(_), _) => Some((name.to_owned(), value.span().start)),
            (DeValue::Table(inner), below) => {
                let none = DeTable::new();
                let below = if let Some(DeValue::Table(below)) = below { below } else { &none };
                let (below, at) = array_for_another(below, inner)?;
                Some((format!("{name}.{below}"), at))
            }
            _ => None,
        }
    })
}

/// A text of a message, in which names of the input may stand: bounded, and without what changes a terminal.
fn shown(text: &str) -> String {
    let is_plain = |letter: &char| " '\"\\".contains(*letter) || letter.escape_debug().len() == 1;
    let mut shown: String = text
        .chars()
        .take(MAX_SHOWN)
        .map(|letter| if is_plain(&letter) { letter } else { '\u{FFFD}' })
        .collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// The dotted name of the entry whose key or value begins at byte `at`.
fn name_at(table: &DeTable<'_>, at: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref().as_ref();
        if let DeValue::Table(inner) = value.get_ref()
            && let Some(below) = name_at(inner, at)
        {
            return Some(format!("{name}.{below}"));
        }
        (key.span().start == at || value.span().start == at).then(|| name.to_owned())
    })
}

/// Merges `over` into `base`: tables are merged, all other values are replaced.
///
/// Each key keeps the position of its value in the text.
#[doc(hidden)]
pub fn merge<'t>(base: &mut DeTable<'t>, over: &DeTable<'t>) {
    for (key, value) in over.iter() {
        if let DeValue::Table(over) = value.get_ref()
            && let Some(below) = base.get_mut(key.get_ref().as_ref())
            && let DeValue::Table(base) = below.get_mut()
        {
            merge(base, over);
        } else {
            // Replacing the value only would keep the old key's position in the text.
            base.remove(key.get_ref().as_ref());
            base.insert(key.clone(), value.clone());
        }
    }
}

/// A deserializer's message, with the name that was probably meant.
#[doc(hidden)]
#[must_use]
pub fn explained(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    match names.next() {
        Some(name) if is_unknown => {
            let subject = message.split(", expected").next().unwrap_or(message);
            format!("{subject}; {}", alternatives(name, names))
        }
        _ => message.trim_end().into(),
    }
}

/// A hint for an unknown `name`: the most similar known name, or all names if they are few.
#[doc(hidden)]
pub fn alternatives<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: BTreeSet<&str> = known.into_iter().collect();
    // A name is similar if at most a third of its letters differ.
    let limit = (name.chars().count() / 3).max(1);
    let distance = |other: &str| strsim::osa_distance(name, other);
    let nearest = known.iter().map(|other| (distance(other), *other)).min();
    match nearest {
        Some((distance, other)) if distance <= limit => format!("did you mean `{other}`?"),
        None => "nothing is known".into(),
        _ if known.len() <= FEW => format!("known: {}", quoted(known)),
        _ => {
            let mut near: Vec<_> = known.iter().map(|other| (distance(other), *other)).collect();
            near.sort_unstable();
            let near = near.into_iter().take(FEW).map(|(_, other)| other);
            format!("{} are known, the nearest: {}", known.len(), quoted(near))
        }
    }
}

/// The names in backticks, separated by commas.
fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;
    use std::time::Duration;

    use serde::Deserialize;

    use super::*;
    use crate::words;

    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Timer {
        #[serde(with = "words::duration")]
        wait: Duration,
        #[serde(with = "words::or_off")]
        burst: Option<NonZeroU8>,
        #[serde(with = "words::optional_duration")]
        limit: Option<Duration>,
        loss: Loss,
    }

    impl Default for Timer {
        fn default() -> Self {
            sender().timer
        }
    }

    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Loss {
        Reports { threshold: u8 },
        Rack,
    }

    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sender {
        window: u32,
        timer: Timer,
    }

    fn sender() -> Sender {
        let timer = Timer {
            wait: Duration::from_secs(1),
            burst: NonZeroU8::new(4),
            limit: Some(Duration::from_millis(30)),
            loss: Loss::Reports { threshold: 3 },
        };
        Sender { window: 10, timer }
    }

    #[test]
    fn arrays_are_refused_and_long_or_odd_names_are_not_repeated() {
        let refused = |text: &str| changed(&sender(), text).expect_err(text).to_string();
        assert_eq!(refused("\ntimer = []"), "line 2: timer: an array; no array is a value of it");
        let inner = "timer.loss = { reports = [7] }";
        assert_eq!(
            refused(inner),
            "line 1: timer.loss.reports: an array; no array is a value of it"
        );
        assert!(refused("timer.\"\\u001b[2J\\u202e\" = 1").contains("timer.\u{FFFD}[2J\u{FFFD}: "));
        assert!(refused(&format!("{} = 1", "a".repeat(15_000))).len() < 1000);
    }

    #[test]
    fn only_what_is_named_changes_and_tables_may_have_any_form() {
        let mut expected = sender();
        expected.timer.wait = Duration::from_millis(200);
        for text in [
            "timer.wait = '200ms'",
            "[timer]\nwait = \"200ms\" # less\n",
            "timer = { wait = '200ms' }",
        ] {
            assert_eq!(changed(&sender(), text).as_ref(), Ok(&expected), "{text}");
        }
        assert_eq!(changed(&sender(), ""), Ok(sender()));
        let off = "timer = { burst = 'off', limit = 'off', loss = 'rack' }";
        let off = changed(&sender(), off).unwrap();
        assert_eq!((off.timer.burst, off.timer.limit, &off.timer.loss), (None, None, &Loss::Rack));
        assert_eq!(changed(&off, "").as_ref(), Ok(&off), "it stays off, though the default is on");
        let back = changed(&off, "timer.burst = 2\ntimer.loss.reports.threshold = 5").unwrap();
        assert_eq!(back.timer.burst, NonZeroU8::new(2));
        assert_eq!(back.timer.loss, Loss::Reports { threshold: 5 });
    }

    #[test]
    fn a_mistake_has_its_line_its_setting_and_what_was_meant() {
        for (text, expected) in [
            ("windw = 1", "line 1: windw: unknown field `windw`; did you mean `window`?"),
            (
                "window = 1\ntimer.wiat = '1s'",
                "line 2: timer.wiat: unknown field `wiat`; did you mean `wait`?",
            ),
            (
                "\n\n[timer]\nwait = '200'",
                "line 4: timer.wait: `200` needs one of the units ns, us, ms, s, min, h",
            ),
            ("window = -1", "line 1: window: invalid value: integer `-1`, expected u32"),
            ("window = 'ten'", "line 1: window: invalid type: string \"ten\", expected u32"),
            (
                "timer.burst = 0",
                "line 1: timer.burst: invalid value: integer `0`, expected a nonzero u8",
            ),
            (
                "timer.burst = 'on'",
                "line 1: timer.burst: invalid type: string \"on\", expected a nonzero u8, or `off`",
            ),
            (
                "timer.loss = 'rak'",
                "line 1: timer.loss: unknown variant `rak`; did you mean `rack`?",
            ),
            ("timer = 1", "line 1: timer: invalid type: integer `1`, expected struct Timer"),
            ("window = 1\nwindow = 2", "line 2: duplicate key"),
        ] {
            assert_eq!(changed(&sender(), text).unwrap_err().to_string(), expected, "{text}");
        }
        let no_toml = changed(&sender(), "window = 1\nwindow of 2").unwrap_err().to_string();
        assert!(no_toml.starts_with("line 2: ") && no_toml.contains("expected"), "{no_toml}");
        assert!(changed(&sender(), "\u{e4} = \u{fe}").is_err());
    }

    #[test]
    fn the_length_of_a_text_and_its_depth_are_bounded() {
        let text = |bytes: usize| format!("window = 2 #{}", "x".repeat(bytes - 12));
        assert_eq!(changed(&sender(), &text(MAX_BYTES)).map(|it| it.window), Ok(2));
        let too_long = changed(&sender(), &text(MAX_BYTES + 1)).unwrap_err();
        assert_eq!(too_long, SettingsError::TooLong(16_385));
        assert!(too_long.to_string().contains("at most 16384 are allowed"));
        let deep = format!("timer = {}", "[".repeat(MAX_BYTES - 20));
        assert!(changed(&sender(), &deep).is_err());
        let dotted = format!("timer{} = 1", ".a".repeat(MAX_BYTES / 2 - 20));
        assert!(changed(&sender(), &dotted).is_err());
        let tables = format!("timer = {}", "{a=".repeat(MAX_BYTES / 3 - 20));
        assert!(changed(&sender(), &tables).is_err());
    }

    #[test]
    fn the_nearest_name_is_proposed_and_few_are_all_named() {
        assert_eq!(alternatives("sytsem", ["system", "loss"]), "did you mean `system`?");
        assert_eq!(alternatives("rtt", ["system", "loss"]), "known: `loss`, `system`");
        assert_eq!(alternatives("rtt", []), "nothing is known");
        let many: Vec<String> = (0..30).map(|n| format!("quantity{n}")).collect();
        let said = alternatives("rtt", many.iter().map(String::as_str));
        assert!(said.starts_with("30 are known, the nearest: `quantity"), "{said}");
        assert_eq!(said.matches('`').count(), 2 * FEW);
    }
}
