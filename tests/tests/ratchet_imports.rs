//! Files of a crate import each other in small circles only (ARCHITECTURE.md).
//!
//! A file imports the files that define the names in its `use` declarations and paths: `pub use` is followed to the
//! definition, and a file that only re-exports a name does not import it. Names of other crates, and code that is built
//! only for tests or documentation, are ignored.

mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sources::{Import, Source};

/// The largest number of files in a circle of imports.
const MOST: usize = 3;

/// The path of a module: `["association", "paths"]`; empty for the root.
type Place = Vec<String>;

/// The modules of a crate.
struct Crate {
    modules: BTreeMap<Place, Source>,
}

impl Crate {
    /// From the text of each module's file.
    fn new(files: impl IntoIterator<Item = (Place, String)>) -> Self {
        let read = |(place, text): (Place, String)| (place, Source::read(&text));
        let mut modules: BTreeMap<_, _> = files.into_iter().map(read).collect();
        let of_tests: Vec<Place> = modules
            .iter()
            .flat_map(|(place, source)| source.left_out.iter().map(|name| child(place, name)))
            .collect();
        modules.retain(|place, _| !of_tests.iter().any(|left_out| place.starts_with(left_out)));
        Self { modules }
    }

    fn of_folder(folder: &Path) -> Self {
        let mut files = Vec::new();
        collect(folder, &mut files);
        Self::new(files.into_iter().map(|file| {
            let text = std::fs::read_to_string(&file).expect("readable sources");
            let place = file.strip_prefix(folder).expect("a file below").with_extension("");
            let parts = place.iter().map(|part| part.to_str().expect("a name in UTF-8").to_owned());
            let mut place: Place = parts.collect();
            place.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
            (place, text)
        }))
    }

    /// The absolute path of one that is used in the module at `place`; `None` if it leads out of the crate.
    fn absolute(&self, place: &[String], path: &[String]) -> Option<Place> {
        let first = path.first()?;
        let ups = path.iter().take_while(|part| *part == "super").count();
        let (base, rest) = match first.as_str() {
            "crate" => (&[][..], &path[1..]),
            "self" => (place, &path[1..]),
            "super" => (place.get(..place.len().checked_sub(ups)?)?, &path[ups..]),
            _ if self.modules.contains_key(&child(place, first)) => (place, path),
            _ => return None,
        };
        Some([base, rest].concat())
    }

    /// The modules that define the names in `path`, which begins at the root.
    fn definers(&self, path: &[String], seen: &mut BTreeSet<Place>) -> BTreeSet<Place> {
        if !seen.insert(path.to_vec()) {
            return BTreeSet::new();
        }
        let is_module = |&length: &usize| self.modules.contains_key(&path[..length]);
        let Some(length) = (0..=path.len()).rev().find(is_module) else { return BTreeSet::new() };
        let (place, rest) = path.split_at(length);
        let source = &self.modules[place];
        let Some(name) = rest.first() else { return [place.to_vec()].into() };
        let named: Vec<&Import> = source.imports.iter().filter(|it| it.name == *name).collect();
        let from = if !named.is_empty() || source.declares(name) {
            named
        } else {
            source.imports.iter().filter(|import| import.name == "*").collect()
        };
        let mut found = BTreeSet::new();
        for import in from {
            let Some(target) = self.target(place, import) else { continue };
            let rest = if import.name == "*" { rest } else { &rest[1..] };
            found.extend(self.definers(&[&target[..], rest].concat(), seen));
        }
        if found.is_empty() { [place.to_vec()].into() } else { found }
    }

    /// The imports of the module at `place`.
    fn imports(&self, place: &Place) -> BTreeSet<Place> {
        let source = &self.modules[place];
        let is_used =
            |import: &&Import| !import.is_passed_on || source.names.contains(&import.name);
        let paths = source.imports.iter().filter(is_used).map(|import| &import.path);
        let mut found = BTreeSet::new();
        for path in paths.chain(&source.paths) {
            let path = path.strip_suffix(&["*".to_owned()]).unwrap_or(path);
            if let Some(path) = self.absolute(place, path) {
                found.extend(self.definers(&path, &mut BTreeSet::new()));
            }
        }
        let globs = source.imports.iter().filter(|import| import.name == "*");
        for target in globs.filter_map(|import| self.target(place, import)) {
            for name in &source.names {
                found.extend(self.passed_on(&target, name, &mut BTreeSet::new()));
            }
        }
        found.remove(place);
        found
    }

    /// The target of a `use` in the module at `place`; for `a::*`, `a`.
    fn target(&self, place: &[String], import: &Import) -> Option<Place> {
        let path = import.path.strip_suffix(&["*".to_owned()]).unwrap_or(&import.path);
        self.absolute(place, path)
    }

    /// The modules that define `name`, if the one at `place` re-exports it from them; `use place::*` then imports from
    /// them, too.
    fn passed_on(&self, place: &Place, name: &str, seen: &mut BTreeSet<Place>) -> BTreeSet<Place> {
        let Some(source) = self.modules.get(place).filter(|_| seen.insert(place.clone())) else {
            return BTreeSet::new();
        };
        if source.declares(name) {
            return [place.clone()].into();
        }
        let mut found = BTreeSet::new();
        for import in &source.imports {
            let Some(target) = self.target(place, import) else { continue };
            if import.name == name {
                found.extend(self.definers(&target, &mut BTreeSet::new()));
            } else if import.name == "*" {
                found.extend(self.passed_on(&target, name, seen));
            }
        }
        found
    }

    /// Groups of modules that import each other, directly or indirectly, the largest first.
    fn circles(&self) -> Vec<Vec<Place>> {
        let graph: BTreeMap<&Place, BTreeSet<Place>> =
            self.modules.keys().map(|place| (place, self.imports(place))).collect();
        let reach: BTreeMap<&Place, BTreeSet<&Place>> =
            graph.keys().map(|place| (*place, reachable(&graph, place))).collect();
        let mut circles = BTreeSet::new();
        for (place, there) in &reach {
            let and_back = there.iter().filter(|other| reach[*other].contains(place));
            let circle: Vec<Place> = and_back.map(|place| (*place).clone()).collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        let mut circles = Vec::from_iter(circles);
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }
}

fn child(place: &[String], name: &str) -> Place {
    [place, &[name.to_owned()]].concat()
}

fn reachable<'g>(
    graph: &'g BTreeMap<&Place, BTreeSet<Place>>,
    from: &Place,
) -> BTreeSet<&'g Place> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&Place> = graph[from].iter().collect();
    while let Some(place) = next.pop() {
        if found.insert(place) {
            next.extend(&graph[place]);
        }
    }
    found
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn words(circle: &[Place]) -> String {
    let words: Vec<String> = circle.iter().map(|place| place.join("/")).collect();
    words.join(", ")
}

#[test]
fn no_circle_of_imports_has_more_than_three_files() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(crates).expect("a folder of crates") {
        let folder = entry.expect("a readable folder").path();
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8");
        let own = Crate::of_folder(&folder.join("src"));
        assert!(!own.modules.is_empty(), "{name} has no sources");
        for circle in own.circles().iter().filter(|circle| circle.len() > MOST) {
            wrong.push(format!("{name}: {} files: {}", circle.len(), words(circle)));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// An artificial crate, given by module names and texts.
fn made_up(files: &[(&str, &str)]) -> Crate {
    Crate::new(files.iter().map(|(place, text)| {
        let parts = place.split('/').filter(|part| !part.is_empty());
        (parts.map(str::to_owned).collect(), (*text).to_owned())
    }))
}

fn circles(files: &[(&str, &str)]) -> Vec<String> {
    made_up(files).circles().iter().map(|circle| words(circle)).collect()
}

#[test]
fn circles_are_found_through_uses_paths_and_passed_on_names() {
    let by_use = [
        ("", "mod a; mod b;"),
        ("a", "use crate::b::B; pub struct A;"),
        ("b", "use super::a::{self, A};"),
    ];
    assert_eq!(circles(&by_use), ["a, b"]);
    let by_path =
        [("", "mod a; mod b;"), ("a", "fn f() -> crate::b::B {}"), ("b", "use super::a::A;")];
    assert_eq!(circles(&by_path), ["a, b"]);
    let passed_on = [
        ("", "mod a; mod b;"),
        ("a", "mod inner; pub use inner::A;"),
        ("a/inner", "use crate::b::B;"),
        ("b", "use crate::a::A;"),
    ];
    assert_eq!(circles(&passed_on), ["a/inner, b"]);
    let renamed = [
        ("", "mod a; mod b; pub use a::A as C;"),
        ("a", "use crate::b::B;"),
        ("b", "use crate::C;"),
    ];
    assert_eq!(circles(&renamed), ["a, b"]);
    let all = [
        ("", "mod a; mod b; pub use a::*;"),
        ("a", "use crate::b::B; pub struct A;"),
        ("b", "use crate::A;"),
    ];
    assert_eq!(circles(&all), ["a, b"]);
    let all_of_the_parent = [
        ("", "mod a; mod b;"),
        ("a", "mod inner; pub use crate::b::B; pub struct A;"),
        ("a/inner", "use super::*; pub struct I(B);"),
        ("b", "use crate::a::inner::I;"),
    ];
    assert_eq!(circles(&all_of_the_parent), ["a/inner, b"]);
    let twice = [
        ("", "mod a; mod b; mod c; pub use c::C as D; pub(crate) use b as other;"),
        ("a", "use crate::D; pub struct A;"),
        ("b", "use crate::a::A; pub use crate::a::A as E;"),
        ("c", "pub use crate::other::B as C;"),
    ];
    assert_eq!(circles(&twice), ["a, b"]);
    let parent = [
        ("a", "mod inner; use inner::I; pub struct A;"),
        ("", "mod a;"),
        ("a/inner", "use super::A;"),
    ];
    assert_eq!(circles(&parent), ["a, a/inner"]);
}

#[test]
fn text_that_is_no_import_makes_no_circle() {
    let none: [&str; 0] = [];
    let facade = [
        ("", "mod a; mod b; pub use a::A; pub use b::B;"),
        ("a", "pub struct A;"),
        ("b", "use crate::A;"),
    ];
    assert_eq!(circles(&facade), none);
    let comment = [
        ("", "mod a; mod b;"),
        ("a", "// use crate::b::B;\n/* crate::b */ const A: &str = \"crate::b::B\";"),
        ("b", "use crate::a::A;"),
    ];
    assert_eq!(circles(&comment), none);
    let of_tests = [
        ("", "mod a; mod b;"),
        (
            "a",
            "#[cfg(test)] mod tests { use crate::b::B; } #[cfg(all(test, unix))] mod more { use crate::b::B; } #[cfg(doc)] use crate::b::B; pub(in crate::b) fn f<'b>(c: char) { c == 'b'; }",
        ),
        ("b", "use crate::a::A; #[cfg(test)] mod tests;"),
        ("b/tests", "use super::kit; use super::*; mod kit;"),
        ("b/tests/kit", "use super::super::tests::T;"),
    ];
    assert_eq!(circles(&of_tests), none);
}
