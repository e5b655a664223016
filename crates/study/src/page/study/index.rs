//! The index of all studies: the subject of each, its verdicts, and a link to its page.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{STYLE, sign, word};
use crate::page::StudyPage;
use crate::page::template::{self, escaped, fill};
use crate::verdict::VerdictKind;

const PAGE: &str = include_str!("../../../assets/study/index.html");

const KINDS: [VerdictKind; 3] =
    [VerdictKind::Holds, VerdictKind::DoesNotHold, VerdictKind::Undecided];

/// The entry of a study in the index.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The name of the study; its page is `NAME/report.html`.
    pub name: String,
    /// The title of the study.
    pub title: String,
    /// The figure or table that it reproduces.
    pub source: String,
    /// The version of rexmit that ran it.
    pub version: String,
    /// The claims of the study, in their order.
    pub claims: Vec<ClaimSummary>,
}

/// A claim and its verdict.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClaimSummary {
    /// The claim, in the words of the study.
    pub says: String,
    /// The verdict.
    pub verdict: VerdictKind,
}

impl From<&StudyPage> for Summary {
    fn from(page: &StudyPage) -> Self {
        let claim = |claim: &crate::Verdict| ClaimSummary {
            says: claim.says.clone(),
            verdict: claim.verdict,
        };
        Self {
            name: page.study.name.clone(),
            title: page.study.title.clone(),
            source: page.study.source.clone(),
            version: page.study.version.clone(),
            claims: page.claims.iter().map(claim).collect(),
        }
    }
}

/// The index of `studies`, in their order, as one HTML file. Each links to `NAME/report.html`
/// next to it.
///
/// No content of a study can inject markup.
#[must_use]
pub fn index(studies: &[Summary]) -> String {
    let claims: Vec<&ClaimSummary> = studies.iter().flat_map(|study| &study.claims).collect();
    fill(PAGE, |place| match place {
        "css" => [template::STYLE, STYLE].concat(),
        "total" => total(studies.len(), claims.len()),
        "counts" => counts(&claims),
        "studies" => studies.iter().map(entry).collect(),
        other => unreachable!("the page has no place {other}"),
    })
}

fn total(studies: usize, claims: usize) -> String {
    let count = |number: usize, one: &str, many: &str| {
        format!("{number} {}", if number == 1 { one } else { many })
    };
    format!("{}, {}.", count(studies, "study", "studies"), count(claims, "claim", "claims"))
}

/// The number of claims by verdict, as badges; a verdict without claims has no badge.
fn counts(claims: &[&ClaimSummary]) -> String {
    let badge = |kind: VerdictKind| {
        let number = claims.iter().filter(|claim| claim.verdict == kind).count();
        (number > 0).then(|| badge(kind, &format!("{number} {}", counted_word(kind, number))))
    };
    KINDS.into_iter().filter_map(badge).collect::<Vec<_>>().join(" ")
}

fn counted_word(kind: VerdictKind, number: usize) -> &'static str {
    match (kind, number) {
        (VerdictKind::Holds, 2..) => "hold",
        (VerdictKind::DoesNotHold, 2..) => "do not hold",
        _ => word(kind),
    }
}

fn badge(kind: VerdictKind, text: &str) -> String {
    let class = word(kind).replace(' ', "-");
    format!("<span class=\"verdict {class}\"><i>{}</i> {text}</span>", sign(kind))
}

fn entry(study: &Summary) -> String {
    let mut entry = format!(
        "<article class=\"study\"><h2><a href=\"{}/report.html\">{}</a></h2>\n\
         <p class=\"note\">{} · <code>{}</code> · rexmit {}</p>\n",
        escaped(&in_address(&study.name)),
        escaped(&study.title),
        escaped(&study.source),
        escaped(&study.name),
        escaped(&study.version),
    );
    if study.claims.is_empty() {
        entry.push_str("<p class=\"note\">It makes no claim.</p>\n");
    } else {
        let counts = counts(&study.claims.iter().collect::<Vec<_>>());
        let _ = writeln!(entry, "<details><summary>{counts}</summary><ul class=\"claims\">");
        for claim in &study.claims {
            let verdict = badge(claim.verdict, word(claim.verdict));
            let _ = writeln!(entry, "<li>{verdict} {}</li>", escaped(&claim.says));
        }
        entry.push_str("</ul></details>\n");
    }
    entry + "</article>\n"
}

/// `name` encoded as one path segment of a URL.
fn in_address(name: &str) -> String {
    let mut step = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            step.push(char::from(byte));
        } else {
            let _ = write!(step, "%{byte:02X}");
        }
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(name: &str, verdicts: &[VerdictKind]) -> Summary {
        let claim = |&verdict| ClaimSummary { says: format!("{name} is so"), verdict };
        Summary {
            name: name.into(),
            title: format!("The title of {name}"),
            source: "Petlund 2009, Fig. 8a".into(),
            version: "1.2.3".into(),
            claims: verdicts.iter().map(claim).collect(),
        }
    }

    #[test]
    fn each_study_is_linked_and_its_verdicts_are_counted() {
        use VerdictKind::{DoesNotHold, Holds, Undecided};
        let page = index(&[
            study("petlund2009-fig8a", &[Holds, Holds, DoesNotHold]),
            study("fig10", &[Holds, Undecided]),
            study("fig5", &[]),
        ]);
        let addresses: Vec<&str> = page
            .split("href=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap_or_default())
            .collect();
        assert_eq!(
            addresses,
            ["petlund2009-fig8a/report.html", "fig10/report.html", "fig5/report.html"]
        );
        assert!(page.contains("3 studies, 5 claims."));
        let (head, entries) = page.split_once("<article").unwrap();
        for (kind, text) in [(Holds, "3 hold"), (DoesNotHold, "1 does not hold")] {
            assert!(head.contains(&badge(kind, text)), "{head}");
        }
        assert!(entries.contains(&badge(Holds, "2 hold")));
        assert!(entries.contains("It makes no claim."));
    }

    #[test]
    fn text_of_a_study_stays_in_its_place() {
        let hostile = "</a><script>alert(1)</script>\"{{css}}&";
        let mut study = study("javascript:alert(1)/../\"x", &[VerdictKind::Holds]);
        for text in [&mut study.title, &mut study.source, &mut study.version] {
            *text = hostile.into();
        }
        study.claims[0].says = hostile.into();
        let page = index(&[study]);
        assert!(!page.contains("<script"));
        let shown = "&lt;/a&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;{{css}}&amp;";
        assert_eq!(page.matches(shown).count(), 4);
        assert!(page.contains("href=\"javascript%3Aalert%281%29%2F..%2F%22x/report.html\""));
        template::assert_requests_nothing(&page);
    }
}
