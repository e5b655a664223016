//! A guard against home-made English: phrases that this field does not use may make up no more than a few
//! lines in a thousand of the prose in comments, texts and documents (CONTRIBUTING.md, "Language").
//!
//! A hit may be fine, and text without a hit may still be hard to understand: the test only prevents a relapse.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Hits in a thousand lines of prose.
const LIMIT: f64 = 1.3;

/// Phrases, in lower case, as whole words. The comments list replacements.
const PHRASES: &[&str] = &[
    // sent, transmitted; retransmitted; sent once
    "leaves again",
    "leave again",
    "left again",
    "has left",
    "have left",
    "that leaves",
    "that left",
    "which left",
    "what leaves",
    "what left",
    "as it left",
    "it leaves",
    "it left",
    // detected by, distinguished by; reports, informs
    "told by",
    "told apart",
    "told from",
    "tell of",
    "tells of",
    "tells a",
    "tells that",
    "tells whether",
    "tells how",
    "tells when",
    "tells what",
    "tells which",
    "tells apart",
    // tolerated; bundled; spurious; redundant
    "borne",
    "take along",
    "takes along",
    "taken along",
    "go along",
    "goes along",
    "in vain",
    "needless",
    "needlessly",
    "on purpose",
    // the quantity by its name
    "so many as",
    "so many of",
    "so many that",
    "so much as",
    "so much of",
    "so much that",
    "so long as",
    "so often as",
    "as many as",
    "as much as",
    "as often as",
    "is none",
    "are none",
    "of none",
    "good for nothing",
    "give away",
    "gives away",
    "come to",
    "comes to",
    "would else",
    "go by",
    "goes by",
    // probe timer; PTO; unanswered probes; spurious-retransmission detection; lost ACKs
    "overdue",
    "patience",
    "patient",
    "unheard",
    "doubt",
    "doubts",
    "scrutiny",
    "missed answer",
    "missed answers",
    "late answer",
    "late answers",
    // the caller, the peer, the application
    "nobody",
    "somebody",
    "whoever",
    "who has",
    "who is",
    "who wants",
    "who reads",
    "who writes",
    "who sends",
    "who knows",
    // a noun
    "beside new",
    "beside it",
    "beside what",
    "beside that",
    "of its own doing",
    "of their own doing",
    "is owed",
    "what is not",
    "what is owed",
    "what is outstanding",
    "what is known",
    "what is in flight",
    "what is to be",
    "what is new",
    "what is lost",
    "what is sent",
];

/// Beginnings of a text without a subject, unless it is a question.
const OPENINGS: &[&str] = &[
    "what is",
    "what was",
    "what has",
    "what a",
    "what an",
    "what the",
    "what may",
    "what leaves",
    "what left",
    "who is",
    "who was",
    "who has",
    "who a",
    "who an",
    "who the",
    "who may",
    "how many is",
    "how many a",
    "how many the",
    "how long is",
    "how long a",
    "how long an",
    "how long the",
];

/// Beginnings of a doc comment that refer to another item: the reader of the documentation sees one item at a time.
const REFERENCES: &[&str] = &[
    "it", "its", "they", "them", "their", "those", "these", "not", "and", "of these", "of those",
    "of them", "the same",
];
/// After these words "the same" names its noun later, or never.
const WITHOUT_NOUN: &[&str] = &[
    "", "after", "also", "and", "as", "at", "by", "for", "from", "if", "in", "of", "on", "over",
    "to", "under", "when", "where", "whether", "while", "with", "without",
];

/// Doc comments whose first line refers to another item: in the crates that are published and the C API, and elsewhere.
const MOST_REFERENCES: [usize; 2] = [0, 35];
const PUBLISHED: &[&str] = &[
    "capi",
    "congestion",
    "core",
    "deadline",
    "dtls",
    "netsim",
    "qlog",
    "recovery",
    "rexmit",
    "sctp",
    "tcp",
    "webrtc",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace above").to_owned()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_ours = !name.starts_with('.') && name != "target" && name != "node_modules";
        if path.is_dir() && is_ours {
            files(&path, found);
        } else if comment_mark(&path).is_some() && name != "plain_words.rs" {
            found.push(path);
        }
    }
}

/// The mark that begins a comment in a file of this kind; empty if the whole file is prose.
fn comment_mark(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()? {
        "rs" | "js" => Some("//"),
        "py" | "toml" => Some("#"),
        "md" => Some(""),
        _ => None,
    }
}

/// The pieces of prose in a line: its strings of some length, and its comment.
fn prose<'a>(line: &'a str, mark: &str) -> Vec<&'a str> {
    const LEAST: usize = 12;
    if mark.is_empty() {
        return if line.trim().is_empty() { vec![] } else { vec![line] };
    }
    let (mut found, mut rest) = (Vec::new(), line);
    loop {
        let (comment, quote) = (rest.find(mark), rest.find('"'));
        match (comment, quote) {
            (Some(at), quote) if quote.is_none_or(|quote| at < quote) => {
                let text = rest[at..].trim_start_matches(['/', '!', '#']);
                found.extend((!text.trim().is_empty()).then_some(text));
                return found;
            }
            (_, Some(at)) => {
                let text = &rest[at + 1..];
                let end = end_of_string(text).unwrap_or(text.len());
                found.extend((end >= LEAST).then_some(&text[..end]));
                rest = text.get(end + 1..).unwrap_or("");
            }
            (_, None) => return found,
        }
    }
}

fn end_of_string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, letter)| {
        let is_end = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end.then_some(at)
    })
}

/// With `_` in place of names of code: in backticks, or in the braces of a format string.
fn without_code(text: &str) -> String {
    let (mut prose, mut is_code) = (String::new(), false);
    for letter in text.chars() {
        let was_code = is_code;
        is_code = match letter {
            '`' => !is_code,
            '{' => true,
            '}' => false,
            _ => is_code,
        };
        match (was_code, is_code) {
            (false, false) => prose.push(letter),
            (false, true) => prose.push('_'),
            _ => {}
        }
    }
    prose
}

/// The phrases in a piece of prose.
fn hits(text: &str) -> Vec<&'static str> {
    let text = &without_code(text);
    let words: Vec<String> = text
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let text_of_words = format!(" {} ", words.join(" "));
    let mut found = Vec::new();
    for phrase in PHRASES {
        let count = text_of_words.matches(&format!(" {phrase} ")).count();
        found.extend(std::iter::repeat_n(*phrase, count));
    }
    if !text.contains('?') {
        let begins = |opening: &&&str| text_of_words.starts_with(&format!(" {opening} "));
        found.extend(OPENINGS.iter().filter(begins));
    }
    found
}

#[test]
fn phrases_are_found_in_comments_and_texts_only() {
    assert_eq!(hits("It leaves again, in vain"), ["leaves again", "it leaves", "in vain"]);
    assert_eq!(hits("`patience` of {nobody}, borne"), ["borne"]);
    assert_eq!(hits("What is it?"), Vec::<&str>::new());
    assert_eq!(hits("What is it."), ["what is"]);
    let line = r#"let x = "a needless word"; // told apart"#;
    assert_eq!(prose(line, "//"), ["a needless word", " told apart"]);
    assert_eq!(prose("let nobody = 1;", "//"), Vec::<&str>::new());
}

#[test]
fn prose_uses_the_words_of_the_field() {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    let (mut lines, mut total) = (0_usize, 0_usize);
    let (mut by_phrase, mut by_file) = (BTreeMap::new(), BTreeMap::new());
    let mut places = Vec::new();
    for path in &paths {
        let mark = comment_mark(path).expect("a file with prose");
        let text = std::fs::read_to_string(path).expect("a readable file");
        let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        for (number, line) in (1..).zip(text.lines()) {
            let pieces = prose(line, mark);
            lines += usize::from(!pieces.is_empty());
            for phrase in pieces.into_iter().flat_map(hits) {
                total += 1;
                *by_phrase.entry(phrase).or_insert(0) += 1;
                *by_file.entry(name.clone()).or_insert(0) += 1;
                places.push(format!("{name}:{number}: {phrase}: {}", line.trim()));
            }
        }
    }
    if std::env::var_os("REXMIT_PLAIN_WORDS").is_some() {
        println!("{}", places.join("\n"));
    }
    let density = 1000.0 * total as f64 / lines.max(1) as f64;
    println!("{total} hits in {lines} lines of prose: {density:.1} in 1000");
    let densest = |counts: BTreeMap<String, i32>| {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| -count);
        counts.truncate(10);
        counts
    };
    let by_phrase = by_phrase.into_iter().map(|(phrase, count)| (phrase.to_owned(), count));
    assert!(
        density <= LIMIT,
        "{total} hits in {lines} lines of prose are {density:.1} in 1000, more than {LIMIT}; \
         REXMIT_PLAIN_WORDS=1 lists them\n{:?}\n{:?}",
        densest(by_phrase.collect()),
        densest(by_file)
    );
}

/// The first line of each doc comment of a Rust file, with its number.
fn first_lines(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if let Some(first) = comment.filter(|_| !is_inside) {
            found.push((number, first.trim()));
        }
        is_inside = comment.is_some();
    }
    found
}

/// Whether the first line of a doc comment can only be understood after that of another item.
fn refers_elsewhere(first: &str) -> bool {
    let text = without_code(first).to_lowercase();
    REFERENCES.iter().any(|words| {
        let Some(rest) = text.strip_prefix(words) else { return false };
        let ends = |letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '_';
        let next = rest.trim_start().split(ends).next().unwrap_or("");
        (rest.is_empty() || rest.starts_with(ends))
            && (*words != "the same" || WITHOUT_NOUN.contains(&next))
    })
}

#[test]
fn a_reference_is_found_at_the_beginning_only() {
    for first in ["Its length.", "Those that do.", "Not sent yet.", "The same, with data.", "It"] {
        assert!(refers_elsewhere(first), "{first}");
    }
    for first in ["Items of it.", "The same bytes.", "A unit and its length.", "Notes."] {
        assert!(!refers_elsewhere(first), "{first}");
    }
    let text = "/// One.\n/// Its end.\nfn a() {}\n    /// Its name.\n// It\n";
    assert_eq!(first_lines(text), [(1, "One."), (4, "Its name.")]);
}

#[test]
fn doc_comments_stand_alone() {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let mut places = [Vec::new(), Vec::new()];
    for path in &paths {
        let text = std::fs::read_to_string(path).expect("a readable file");
        let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        let is_in = |of: &&str| name.starts_with(&format!("crates/{of}/src/"));
        let is_published = PUBLISHED.iter().any(is_in) && !name.contains("/tests/");
        for (number, first) in first_lines(&text) {
            if refers_elsewhere(first) {
                places[usize::from(!is_published)].push(format!("{name}:{number}: {first}"));
            }
        }
    }
    for (places, most) in places.iter().zip(MOST_REFERENCES) {
        println!("{} doc comments refer to another item", places.len());
        assert!(
            places.len() <= most,
            "the first lines of {} doc comments, more than {most}, refer to another item; say what the item is:\n{}",
            places.len(),
            places.join("\n")
        );
    }
}
