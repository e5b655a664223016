//! Selection of studies on the command line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use glob::Pattern;
use rexmit_study::studies::{BUILT_IN, BuiltIn, OF_PAPERS, PAPERS};
use rexmit_study::{MAX_SEEDS, Outline, Study, StudyError};

use crate::failure::{Failure, Kind};

/// Number of similar names that are offered for an unknown one.
const NEAREST: usize = 4;

/// Studies by name.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// The name of a built-in study; a common prefix of several, such as `petlund2009`; a pattern, such as `*fig1?`;
    /// `papers` for all studies of the four papers; a file that ends in `.toml`; or a directory of such files.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Select every built-in study; with NAME, all studies whose names begin with it, even if one
    /// is called exactly NAME.
    #[arg(long)]
    all: bool,
}

/// The number of seeds per point.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Seeds {
    /// Run each point with the seeds 1 to N instead of the study's own seeds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS as u64))]
    seeds: Option<u64>,
}

/// A selected study.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) study: Study,
    /// The text of its file.
    pub(super) text: String,
    /// The path of the file; `None` for a built-in study.
    pub(super) path: Option<PathBuf>,
}

/// A study in a list, and the path of its file unless it is built in.
pub(super) type Outlined = (Outline, Option<PathBuf>);

/// The source of a study that has not been read yet.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Source {
    BuiltIn(BuiltIn),
    File(PathBuf),
}

impl Selection {
    /// Whether neither a name nor `--all` is given.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.all
    }

    /// The selected studies; at least one name or `--all` is required.
    pub(super) fn named(&self) -> Result<Vec<Chosen>, Failure> {
        if self.is_empty() {
            let message = "no study given: name one, or use --all; `rexmit study list` shows them";
            return Err(Failure::new(Kind::Usage, message));
        }
        self.or_all()
    }

    /// The selected studies in the order in which they are named, each once. If none is named, all built-in studies.
    /// Fails before anything runs if any of them is invalid.
    pub(super) fn or_all(&self) -> Result<Vec<Chosen>, Failure> {
        let (chosen, wrong) = self.readable()?;
        wrong.map_or(Ok(()), Err)?;
        unlike(&chosen)?;
        Ok(chosen)
    }

    /// The studies that can be read, and the errors of the others.
    pub(super) fn readable(&self) -> Result<(Vec<Chosen>, Option<Failure>), Failure> {
        let (mut chosen, mut wrong) = (Vec::new(), Vec::new());
        for source in self.sources()? {
            match read(source) {
                Ok(study) => chosen.push(study),
                Err(error) => wrong.push(in_words(&error)),
            }
        }
        let failure = || Failure::new(Kind::File, wrong.join("\n"));
        Ok((chosen, (!wrong.is_empty()).then(failure)))
    }

    /// An outline of each study and its path, and the errors of those that cannot be read. Files
    /// are checked completely; the built-in studies were checked when rexmit was built.
    pub(super) fn outlines(&self) -> Result<(Vec<Outlined>, Option<Failure>), Failure> {
        let (mut outlines, mut wrong) = (Vec::new(), Vec::new());
        for source in self.sources()? {
            let outlined = match source {
                Source::BuiltIn(BuiltIn { name, text }) => Study::outline(name, text)
                    .map(|outline| (outline, None))
                    .map_err(StudyError::from),
                file @ Source::File(_) => read(file).and_then(|chosen| {
                    let Chosen { study, text, path } = chosen;
                    Ok((Study::outline(&study.name, &text)?, path))
                }),
            };
            match outlined {
                Ok(outlined) => outlines.push(outlined),
                Err(error) => wrong.push(in_words(&error)),
            }
        }
        let failure = || Failure::new(Kind::File, wrong.join("\n"));
        Ok((outlines, (!wrong.is_empty()).then(failure)))
    }

    fn sources(&self) -> Result<Vec<Source>, Failure> {
        if self.names.is_empty() {
            return Ok(BUILT_IN.iter().copied().map(Source::BuiltIn).collect());
        }
        let mut sources = Vec::new();
        for name in &self.names {
            for source in meant(name, self.all)? {
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
        }
        Ok(sources)
    }
}

impl Seeds {
    pub(super) fn apply(self, chosen: &mut [Chosen]) {
        if let Some(seeds) = self.seeds {
            for Chosen { study, .. } in chosen {
                study.seeds = (1..=seeds).collect();
                study.arguments += &format!(" --seeds {seeds}");
            }
        }
    }
}

/// The studies that `name` selects: at least one.
fn meant(name: &str, all_of_it: bool) -> Result<Vec<Source>, Failure> {
    if name.trim().is_empty() {
        let message =
            "the name of a study is empty: `rexmit study list` shows all; --all selects them";
        return Err(Failure::new(Kind::Usage, message));
    }
    let path = Path::new(name);
    if path.is_dir() {
        return in_folder(path);
    }
    if name.contains('/') || path.extension().is_some_and(|extension| extension == "toml") {
        return Ok(vec![Source::File(path.to_owned())]);
    }
    let found = built_in(BUILT_IN, name, all_of_it)?;
    if found.is_empty() {
        return Err(unknown(name));
    }
    Ok(found.into_iter().map(Source::BuiltIn).collect())
}

/// The built-in study of that name; otherwise those that match the pattern, or whose names begin with it.
fn built_in(known: &[BuiltIn], name: &str, all_of_it: bool) -> Result<Vec<BuiltIn>, Failure> {
    if let Some(exact) = known.iter().find(|study| study.name == name && !all_of_it) {
        return Ok(vec![*exact]);
    }
    if name == PAPERS {
        let is_of_paper =
            |study: &&BuiltIn| OF_PAPERS.iter().any(|paper| study.name.starts_with(paper));
        return Ok(known.iter().filter(is_of_paper).copied().collect());
    }
    let pattern = Pattern::new(name).map_err(|error| {
        Failure::new(Kind::Usage, format!("`{name}` is not a valid pattern: {error}"))
    })?;
    let matches = |study: &&BuiltIn| study.name.starts_with(name) || pattern.matches(study.name);
    Ok(known.iter().filter(matches).copied().collect())
}

fn unknown(name: &str) -> Failure {
    let nearest = match nearest(BUILT_IN, name).as_slice() {
        [] => String::new(),
        names => format!("the nearest: {}; ", names.join(", ")),
    };
    let message = format!(
        "there is no study `{name}`: {nearest}`rexmit study list` lists all {}; for a file say \
         `./{name}.toml`",
        BUILT_IN.len()
    );
    Failure::new(Kind::Usage, message)
}

/// Similar names, most similar first. A name is similar if at most half of its letters differ, in
/// the whole name or in the part after its source.
fn nearest(known: &[BuiltIn], name: &str) -> Vec<&'static str> {
    let distance = |known: &str| {
        let figure = known.rsplit('-').next().unwrap_or(known);
        strsim::osa_distance(known, name).min(strsim::osa_distance(figure, name))
    };
    let limit = name.chars().count() / 2;
    let near = known.iter().map(|study| (distance(study.name), study.name));
    let mut near: Vec<_> = near.filter(|(distance, _)| *distance <= limit).collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().take(NEAREST).map(|(_, name)| name).collect()
}

/// The reason why a study cannot be read, and what to do.
fn in_words(error: &StudyError) -> String {
    match error {
        StudyError::Unreadable { error: cause, .. } if cause.kind() == io::ErrorKind::NotFound => {
            format!("{error}; check the path, or name a study of `rexmit study list`")
        }
        error => error.to_string(),
    }
}

fn in_folder(folder: &Path) -> Result<Vec<Source>, Failure> {
    let unreadable =
        |error| Failure::new(Kind::File, format!("{} cannot be read: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    if paths.is_empty() {
        let message = format!("there is no study in {}: no file ends in .toml", folder.display());
        return Err(Failure::new(Kind::File, message));
    }
    Ok(paths.into_iter().map(Source::File).collect())
}

/// Rejects studies of the same name: their results would go to the same directory.
fn unlike(chosen: &[Chosen]) -> Result<(), Failure> {
    for (index, study) in chosen.iter().enumerate() {
        let same = |other: &&Chosen| other.study.name == study.study.name;
        if let Some(other) = chosen[..index].iter().find(same) {
            let (name, first, second) = (&study.study.name, other.place(), study.place());
            let message = format!(
                "two studies are called `{name}`: {first} and {second}; rename a file or choose one"
            );
            return Err(Failure::new(Kind::Usage, message));
        }
    }
    Ok(())
}

fn read(source: Source) -> Result<Chosen, StudyError> {
    match source {
        Source::BuiltIn(BuiltIn { name, text }) => {
            Ok(Chosen { study: Study::parse(name, text)?, text: text.into(), path: None })
        }
        Source::File(path) => {
            let study = Study::load(&path)?;
            Ok(Chosen { text: study.text.clone(), study, path: Some(path) })
        }
    }
}

impl Chosen {
    /// The location of the study, as text.
    fn place(&self) -> String {
        self.path.as_ref().map_or_else(|| "built in".into(), |path| path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_itself_or_for_all_that_begin_so() {
        let names = ["petlund2009-fig1", "petlund2009-fig10", "petlund2009-fig8a", "rr-sctp-fig5"];
        let known = names.map(|name| BuiltIn { name, text: "" });
        let found = |name: &str, all: bool| -> Vec<&str> {
            let found = built_in(&known, name, all).unwrap();
            found.iter().map(|study| study.name).collect()
        };
        assert_eq!(found("petlund2009-fig1", false), names[..1]);
        assert_eq!(found("petlund2009-fig1", true), names[..2]);
        assert_eq!(found("petlund2009", false), names[..3]);
        assert_eq!(found("rr-sctp", true), names[3..]);
        assert_eq!(found("*fig?", false), [names[0], names[3]]);
        assert_eq!(found("*fig[18]*", false), names[..3]);
        assert!(found("fig", false).is_empty());
        assert_eq!(built_in(BUILT_IN, "papers", false).unwrap().len(), 42);
        assert_eq!(found("papers", false), names);
        assert!(built_in(&known, "a[", false).is_err());
    }

    #[test]
    fn an_empty_name_selects_nothing() {
        for name in ["", " "] {
            let failure = meant(name, false).unwrap_err();
            assert_eq!(failure.code(), Kind::Usage as u8);
            assert!(format!("{failure:?}").contains("the name of a study is empty"));
        }
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest_ones() {
        let names = ["petlund2009-fig1", "petlund2009-fig10", "petlund2009-fig8a", "rr-sctp-fig5"];
        let known = names.map(|name| BuiltIn { name, text: "" });
        assert_eq!(nearest(&known, "rr-scpt-fig5"), names[3..]);
        assert_eq!(nearest(&known, "fig11"), names);
        assert_eq!(nearest(&known, "petlund2009-fig8b")[0], names[2]);
        assert!(nearest(&known, "nonsense").is_empty());
    }
}
