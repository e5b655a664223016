//! The imports and declarations of a Rust file.

use std::collections::BTreeSet;

/// A name imported into a module by `use`.
#[derive(Debug)]
pub(crate) struct Import {
    /// The name under which it is imported; `*` for all names.
    pub(crate) name: String,
    /// The path, as it is written.
    pub(crate) path: Vec<String>,
    /// Whether it is visible from outside: `pub use`.
    pub(crate) is_passed_on: bool,
}

/// A file without the code that is built only for tests or documentation.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(crate) imports: Vec<Import>,
    /// Paths outside of `use`.
    pub(crate) paths: Vec<Vec<String>>,
    /// Every name outside of `use`.
    pub(crate) names: BTreeSet<String>,
    /// Modules in separate files that are left out.
    pub(crate) left_out: Vec<String>,
    declared: BTreeSet<String>,
}

/// The keywords that declare the name after them.
const DECLARING: [&str; 9] =
    ["struct", "enum", "fn", "const", "static", "type", "trait", "union", "mod"];

impl Source {
    pub(crate) fn read(text: &str) -> Self {
        let mut source = Self::default();
        let mut words = Words { words: words(text), at: 0 };
        let mut is_public = false;
        while let Some(word) = words.next() {
            match word.as_str() {
                "#" if words.is_left_out() => source.leave_out(&mut words),
                "pub" => {
                    words.skip_parentheses();
                    is_public = true;
                    continue;
                }
                "use" => source.read_use(&mut words, &[], is_public),
                name if is_name(name) => {
                    if DECLARING.contains(&name) {
                        source.declared.extend(words.peek(0).cloned());
                    }
                    source.read_path(&mut words, word);
                }
                _ => {}
            }
            is_public = false;
        }
        source
    }

    pub(crate) fn declares(&self, name: &str) -> bool {
        self.declared.contains(name)
    }

    fn read_path(&mut self, words: &mut Words, first: String) {
        let mut path = vec![first];
        while words.peek(0).is_some_and(|word| word == "::")
            && words.peek(1).is_some_and(|word| is_name(word))
        {
            words.next();
            path.extend(words.next());
        }
        self.names.insert(path[0].clone());
        if path.len() > 1 {
            self.paths.push(path);
        }
    }

    /// Parses the tree of a `use`, or a branch of it, up to its end.
    fn read_use(&mut self, words: &mut Words, before: &[String], is_passed_on: bool) {
        let mut path = before.to_vec();
        let mut alias = None;
        while let Some(word) = words.next() {
            match word.as_str() {
                "{" => {
                    while words.peek(0).is_some_and(|word| word != "}") {
                        self.read_use(words, &path, is_passed_on);
                    }
                    words.next();
                    // The branches have said everything.
                    path.clear();
                }
                "as" => alias = words.next(),
                "," | ";" => break,
                "self" if path.len() > before.len() || !before.is_empty() => {}
                "::" => {}
                _ => path.push(word),
            }
            if words.peek(0).is_some_and(|word| word == "}") {
                break;
            }
        }
        if let Some(last) = path.last() {
            let name = alias.unwrap_or_else(|| last.clone());
            self.imports.push(Import { name, path, is_passed_on });
        }
    }

    /// Skips the item with the attribute.
    fn leave_out(&mut self, words: &mut Words) {
        words.skip_block("[", "]");
        while words.peek(0).is_some_and(|word| word == "#") {
            words.next();
            words.skip_block("[", "]");
        }
        let begin = words.at;
        while let Some(word) = words.peek(0) {
            match word.as_str() {
                "{" => {
                    words.skip_block("{", "}");
                    // A tree of `use` has its semicolon behind.
                    if words.peek(0).is_some_and(|word| word == ";") {
                        words.next();
                    }
                    return;
                }
                ";" | "," => {
                    let item = &words.words[begin..words.at];
                    let place = item.iter().position(|word| word == "mod");
                    self.left_out.extend(place.and_then(|place| item.get(place + 1)).cloned());
                    words.next();
                    return;
                }
                _ => words.at += 1,
            }
        }
    }
}

struct Words {
    words: Vec<String>,
    at: usize,
}

impl Words {
    fn next(&mut self) -> Option<String> {
        self.at += 1;
        self.words.get(self.at - 1).cloned()
    }

    fn peek(&self, ahead: usize) -> Option<&String> {
        self.words.get(self.at + ahead)
    }

    /// Whether an attribute follows that restricts the item to tests or documentation.
    fn is_left_out(&self) -> bool {
        let is = |expected: &[&str]| {
            expected.iter().enumerate().all(|(n, word)| self.peek(n).is_some_and(|it| it == word))
        };
        is(&["[", "cfg", "(", "test", ")", "]"])
            || is(&["[", "cfg", "(", "doc", ")", "]"])
            || is(&["[", "cfg", "(", "all", "(", "test", ","])
    }

    fn skip_parentheses(&mut self) {
        if self.peek(0).is_some_and(|word| word == "(") {
            self.skip_block("(", ")");
        }
    }

    /// Skips from `open` to the matching `close`.
    fn skip_block(&mut self, open: &str, close: &str) {
        let mut depth = 0;
        while let Some(word) = self.next() {
            depth += i32::from(word == open) - i32::from(word == close);
            if depth == 0 {
                return;
            }
        }
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Splits a text into names, `::`, and single other characters, without comments, strings and lifetimes.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = skipped(rest);
        if skipped > 0 {
            rest = &rest[skipped..];
        } else if is_name(rest) {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            words.push(rest[..end].to_owned());
            rest = &rest[end..];
        } else if let Some(after) = rest.strip_prefix("::") {
            words.push("::".to_owned());
            rest = after;
        } else {
            if !first.is_whitespace() {
                words.push(first.to_string());
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    words
}

/// The length of the comment, string, character or lifetime at the beginning, in bytes.
fn skipped(text: &str) -> usize {
    let to = |end: &str, from: usize| {
        text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
    };
    if text.starts_with("//") {
        return to("\n", 2);
    }
    if text.starts_with("/*") {
        return to("*/", 2);
    }
    for prefix in ["r", "br"] {
        let Some(after) = text.strip_prefix(prefix) else { continue };
        let hashes = after.len() - after.trim_start_matches('#').len();
        if after[hashes..].starts_with('"') {
            return to(&format!("\"{}", "#".repeat(hashes)), prefix.len() + hashes + 1);
        }
    }
    match text.as_bytes() {
        [b'"', ..] => quoted(text, '"'),
        [b'\'', b'\\', ..] => quoted(text, '\''),
        [b'\'', ..] => {
            let mut chars = text.char_indices().skip(2);
            match chars.next() {
                Some((at, '\'')) => at + 1,
                // A lifetime: its name goes with it.
                _ => text[1..]
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .map_or(text.len(), |at| at + 1),
            }
        }
        _ => 0,
    }
}

/// The length of a text that begins with `quote`, up to the next one that is not escaped.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = true; // The first one opens.
    for (at, c) in text.char_indices() {
        if c == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}
