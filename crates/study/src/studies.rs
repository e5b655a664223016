//! The built-in studies: the files in `studies/`.

/// A built-in study.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BuiltIn {
    /// The name of the study, which is that of its file.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(BuiltIn {
            name: $name,
            text: include_str!(concat!("../../../studies/", $name, ".toml")),
        }),*]
    };
}

/// All built-in studies, in the order in which they are listed.
pub const BUILT_IN: &[BuiltIn] = built_in![
    "petlund2009-fig1",
    "petlund2009-fig4",
    "petlund2009-fig5",
    "petlund2009-fig8a",
    "petlund2009-fig8b",
    "petlund2009-fig9",
    "petlund2009-fig10",
    "petlund2009-fig11",
    "petlund2009-fig12",
    "petlund2009-fig13",
    "petlund2009-fig14",
    "petlund2009-table1",
    "petlund2009-sweep",
    "petlund2009-ack-delay",
    "petlund2009-applications",
    "petlund2009-bursts",
    "petlund2009-reordering",
    "petlund2009-rto",
    "petlund2009-rtt-changes",
    "petlund2009-many",
    "petlund2008-fig1",
    "petlund2008-fig2",
    "petlund2008-fairness",
    "petlund2008-fairness-many",
    "petlund2008-nagle",
    "realtime-fig8a",
    "realtime-fig2",
    "rr-sctp-fig5",
    "rr-sctp-fig6",
    "rr-sctp-fig7a",
    "rr-sctp-fig7b",
    "rr-sctp-fig8a",
    "rr-sctp-fig8b",
    "rr-sctp-fig9",
    "rr-sctp-fig10",
    "rr-sctp-fig11",
    "rr-sctp-detection",
    "rr-sctp-threshold",
    "rtx-csi-fig2-9",
    "rtx-csi-fig11",
    "rtx-csi-fig12",
    "rtx-csi-policies",
    "rtx-csi-thin",
    "rtx-csi-speed",
    "limit",
    "limit-pace",
    "limit-tcp",
    "limit-delayed",
    "limit-rtt",
    "ack-copies",
    "outages",
    "cold",
    "two-paths",
    "deadlines",
    "fairness",
    "fairness-queues",
    "mixed",
    "mixed-rivals",
    "bulk",
    "kernel-grid",
    "kernel-tcp",
    "kernel-beside",
    "fairness-kernel",
];

/// The name that stands for the studies of all papers.
pub const PAPERS: &str = "papers";
/// The beginnings of their names, one per paper.
pub const OF_PAPERS: [&str; 4] = ["petlund2009", "petlund2008", "rr-sctp", "rtx-csi"];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_study_in_the_folder_is_built_in_and_is_right() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files: BTreeSet<String> = paths
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        let listed: BTreeSet<String> = BUILT_IN.iter().map(|study| study.name.into()).collect();
        assert_eq!(files, listed, "the list is in studies.rs");
        assert!(!files.iter().any(|name| name.starts_with(PAPERS)), "`{PAPERS}` is no study");
        for BuiltIn { name, text } in BUILT_IN {
            let study =
                crate::Study::parse(name, text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
            let outline = crate::Study::outline(name, text).expect("the study is right");
            assert_eq!((&outline.name, outline.runs), (&study.name, study.runs()));
            assert_eq!((outline.title, outline.source), (study.title, study.source));
        }
    }
}
