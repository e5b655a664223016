//! The book in docs/: its summary lists every page, and every link of the book and of the other documents has a target.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The prefix of links to files outside of the book, so that they work on every rendered page.
const REPOSITORY: &str = "https://github.com/rexmit/rexmit/";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace above").to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The Markdown files of the book.
fn pages() -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(root().join("docs")).expect("the book");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// `text` without its code blocks, in which brackets are not links.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// The targets of the links of `text`.
fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let after = text.split("](").skip(1);
    after.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

/// The anchors of the headings of `text`, as GitHub and mdBook name them.
fn anchors(text: &str) -> BTreeSet<String> {
    let text = prose(text);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// Why the link `target` of the document `from` leads nowhere.
fn broken(from: &Path, target: &str, in_book: bool) -> Option<String> {
    let path = match target.strip_prefix(REPOSITORY) {
        Some(rest) => {
            let path = rest.strip_prefix("blob/main/").or_else(|| rest.strip_prefix("tree/main/"));
            root().join(path?)
        }
        None if target.starts_with("https://") || target.starts_with("http://") => return None,
        None => {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match path {
                "" => from.to_owned(),
                _ => from.parent().expect("a file in a folder").join(path),
            };
            let is_page = path.extension().is_some_and(|extension| extension == "md");
            if !anchor.is_empty() && is_page && !anchors(&read(&path)).contains(anchor) {
                return Some(format!("no heading #{anchor}"));
            }
            if in_book && path.parent() != from.parent() {
                return Some(format!("leaves the book: begin it with {REPOSITORY}blob/main/"));
            }
            path
        }
    };
    (!path.exists()).then(|| "no such file".to_owned())
}

#[test]
fn every_page_is_in_the_summary() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let listed: BTreeSet<_> = links(&read(&summary)).iter().map(|page| docs.join(page)).collect();
    let mut pages = pages();
    pages.remove(&summary);
    assert_eq!(listed, pages);
}

#[test]
fn every_link_leads_somewhere() {
    let beside = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let beside = beside.into_iter().chain(["studies/README.md", "interop/README.md"]);
    let beside = beside.map(|path| (root().join(path), false));
    let mut found = Vec::new();
    for (document, in_book) in pages().into_iter().map(|page| (page, true)).chain(beside) {
        for target in links(&read(&document)) {
            if let Some(why) = broken(&document, &target, in_book) {
                found.push(format!("{}: {target}: {why}", document.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn broken_links_are_found() {
    let from = root().join("docs/proxy.md");
    for target in ["nowhere.md", "security.md#nowhere", "#nowhere", "../README.md"] {
        assert!(broken(&from, target, true).is_some(), "{target}");
    }
    assert!(broken(&from, &format!("{REPOSITORY}blob/main/nowhere.md"), true).is_some());
    for target in ["security.md", "security.md#amplification", "#metrics"] {
        assert_eq!(broken(&from, target, true), None, "{target}");
    }
}
