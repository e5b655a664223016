//! Limits of structure: methods of a type over all its files, fields of a struct, lines of `recovery`, and calls
//! between its rooms. A limit may fall; a commit that raises one gives the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::parse::{Parse, ParseStream};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprField, ExprMethodCall, Ident, Item, ItemImpl, ItemStruct, Member, Token,
    Type, Visibility,
};

/// The most methods of one type, over all files of its crate.
const MAX_METHODS: usize = 60;
/// Types with a higher limit: the crate, the type, and its methods.
const METHODS: &[(&str, &str, usize)] =
    &[("recovery", "LossRecovery", 45), ("sctp", "Association", 100), ("sctp", "Endpoint", 61)];
/// Fields of one struct.
const MAX_FIELDS: usize = 15;
/// Structs with a limit of their own. `ThinFlow` is read from files: in a part that is flattened into it, serde names a key that does not
/// exist, but not those that do.
const FIELDS: &[(&str, &str, usize)] = &[("lab", "ThinFlow", 17), ("recovery", "LossRecovery", 10)];

/// Lines of a crate, comments and blank ones included, without tests.
const LINES: &[(&str, usize)] = &[("recovery", 11_989)];

/// The rooms of `recovery`, and the names of fields and variables that hold their values.
const ROOMS: &[(&str, &[&str])] = &[
    ("config", &["config"]),
    ("fast_recovery", &["fast_recovery"]),
    ("loss", &["loss", "tolerance", "duplicates"]),
    ("outstanding", &["outstanding", "packets"]),
    ("paths", &["paths", "reach"]),
    ("probe", &["probe"]),
    ("recovery", &["recovery"]),
    ("redundancy", &["redundancy"]),
    ("spurious", &["spurious"]),
    ("state", &["state"]),
    ("thin", &["groups"]),
];

/// Fields of values from the crates below: what is called of them is not of a room, though methods may have the same names.
const BELOW: &[&str] = &["delay", "losses", "plan", "t3", "timer", "window"];

/// Methods that collections and options have, too: they count only if the receiver is named above.
const STANDARD: &[&str] = &[
    "clear",
    "contains",
    "end",
    "find",
    "first",
    "get",
    "get_mut",
    "get_or_insert_with",
    "insert",
    "is_empty",
    "is_none",
    "iter",
    "iter_mut",
    "last",
    "len",
    "next",
    "pass",
    "push",
    "remove",
    "set",
    "start",
    "update",
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace above").join("crates")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("a readable folder").path();
        let is_test = path.file_stem().is_some_and(|name| name == "tests");
        if is_test {
            continue;
        } else if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The parsed files of a crate, without tests, with their paths below `src`.
fn files(krate: &str) -> Vec<(PathBuf, syn::File)> {
    let folder = crates().join(krate).join("src");
    let mut found = Vec::new();
    sources(&folder, &mut found);
    assert!(!found.is_empty(), "{krate} has no sources");
    let parse = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("readable sources");
        let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        (path.strip_prefix(&folder).expect("below the folder").to_owned(), file)
    };
    found.into_iter().map(parse).collect()
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

fn name_of(kind: &Type) -> Option<String> {
    match kind {
        Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        Type::Reference(reference) => name_of(&reference.elem),
        _ => None,
    }
}

/// Methods and fields of each type of a crate.
#[derive(Default)]
struct Sizes {
    methods: BTreeMap<String, usize>,
    fields: BTreeMap<String, usize>,
}

impl<'ast> Visit<'ast> for Sizes {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(of) => &of.attrs,
            Item::Impl(of) => &of.attrs,
            Item::Struct(of) => &of.attrs,
            _ => &Vec::new(),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if let (None, Some(name)) = (&item.trait_, name_of(&item.self_ty)) {
            let is_method = |item: &&syn::ImplItem| matches!(item, syn::ImplItem::Fn(method) if !is_test(&method.attrs));
            *self.methods.entry(name).or_default() += item.items.iter().filter(is_method).count();
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        // Two modules may have types of one name: the larger counts.
        let size = self.fields.entry(item.ident.to_string()).or_default();
        *size = item.fields.len().max(*size);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if item.mac.path.is_ident("config") {
            let of: Configuration = item.mac.parse_body().expect("a configuration");
            self.fields.insert(of.name, of.fields);
        }
    }
}

/// The struct in `rexmit_core::config!`, with an optional `const` in front, and names of methods behind types.
struct Configuration {
    name: String,
    fields: usize,
}

impl Parse for Configuration {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let _: Option<Token![const]> = input.parse()?;
        Attribute::parse_outer(input)?;
        let _: (Visibility, Token![struct]) = (input.parse()?, input.parse()?);
        let name = input.parse::<Ident>()?.to_string();
        let content;
        syn::braced!(content in input);
        let field = |input: ParseStream<'_>| {
            Attribute::parse_outer(input)?;
            let _: (Visibility, Ident) = (input.parse()?, input.parse()?);
            let _: (Token![:], Type) = (input.parse()?, input.parse()?);
            let setter: Option<Token![as]> = input.parse()?;
            setter.map(|_| input.parse::<Ident>()).transpose()
        };
        let fields = content.parse_terminated(field, Token![,])?.len();
        Ok(Self { name, fields })
    }
}

fn all_crates() -> Vec<String> {
    let folders = std::fs::read_dir(crates()).expect("the crates");
    let folders = folders.map(|entry| entry.expect("a readable folder").path());
    let names = folders.filter(|path| path.join("src").is_dir());
    names.map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect()
}

/// The quantity, its limit, and the types with a limit of their own.
struct Limit<'a> {
    what: &'a str,
    general: usize,
    own: &'a [(&'a str, &'a str, usize)],
}

impl Limit<'_> {
    /// The types of `krate` beyond their limit, and how many of all have one of their own.
    fn check(&self, krate: &str, sizes: &BTreeMap<String, usize>) -> (Vec<String>, usize) {
        let Self { what, general, own } = self;
        let (mut problems, mut met) = (Vec::new(), 0);
        for (name, &count) in sizes {
            let limit = own.iter().find(|(of, kind, _)| *of == krate && kind == name);
            met += usize::from(limit.is_some());
            let limit = limit.map_or(*general, |(.., limit)| *limit);
            if count > limit {
                problems.push(format!("{krate}::{name} has {count} {what}, {limit} at most"));
            }
        }
        (problems, met)
    }

    #[track_caller]
    fn assert(&self, sizes: impl Fn(&Sizes) -> &BTreeMap<String, usize>) {
        let (mut problems, mut met) = (Vec::new(), 0);
        for krate in all_crates() {
            let (of_crate, met_there) = self.check(&krate, sizes(&sizes_of(&files(&krate))));
            problems.extend(of_crate);
            met += met_there;
        }
        assert_eq!(
            met,
            self.own.len(),
            "a type with a limit of its own is gone: take the limit out"
        );
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}

const METHODS_OF_A_TYPE: Limit<'_> = Limit { what: "methods", general: MAX_METHODS, own: METHODS };
const FIELDS_OF_A_STRUCT: Limit<'_> = Limit { what: "fields", general: MAX_FIELDS, own: FIELDS };

fn sizes_of(files: &[(PathBuf, syn::File)]) -> Sizes {
    let mut found = Sizes::default();
    files.iter().for_each(|(_, file)| found.visit_file(file));
    found
}

/// Files as [`files`] returns them.
fn written(files: &[(&str, &str)]) -> Vec<(PathBuf, syn::File)> {
    let parse = |(path, text): &(&str, &str)| {
        (PathBuf::from(path), syn::parse_file(text).expect("a small text is valid"))
    };
    files.iter().map(parse).collect()
}

/// Numbered items.
fn many(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect()
}

#[test]
fn a_method_too_many_is_reported_whichever_file_it_is_in() {
    let methods = |from: usize, count| many(count, |n| format!("fn m{}(&self) {{}}", from + n));
    let problems = |count: usize| {
        let [first, second] = [(0, 30), (30, count - 30)]
            .map(|(from, count)| format!("impl Type {{ {} }}", methods(from, count)));
        // Those of traits and of tests do not count.
        let rest = format!(
            "struct Type; impl Iterator for Type {{ {} }} #[cfg(test)] impl Type {{ {} }}",
            methods(0, 9),
            methods(90, 9)
        );
        let files = written(&[("a.rs", &first), ("b/c.rs", &second), ("d.rs", &rest)]);
        METHODS_OF_A_TYPE.check("core", &sizes_of(&files).methods).0
    };
    assert_eq!(problems(MAX_METHODS), Vec::<String>::new());
    assert_eq!(problems(MAX_METHODS + 1), ["core::Type has 61 methods, 60 at most"]);
}

#[test]
fn a_field_too_many_is_reported_also_in_a_configuration() {
    let problems = |count| {
        let fields = many(count, |n| format!("pub f{n}: u8,"));
        let text = format!(
            "struct Plain {{ {fields} }} config! {{ const /// Made.\n pub struct Made {{ {fields} }} }}"
        );
        FIELDS_OF_A_STRUCT.check("core", &sizes_of(&written(&[("a.rs", &text)])).fields).0
    };
    assert_eq!(problems(MAX_FIELDS), Vec::<String>::new());
    let want = ["Made", "Plain"].map(|name| format!("core::{name} has 16 fields, 15 at most"));
    assert_eq!(problems(MAX_FIELDS + 1), want);
}

#[test]
fn the_fields_of_a_configuration_are_counted() {
    let text =
        "const /// As is.\n pub struct C { pub a: u8, #[x] pub b: Vec<u8> as with_b, pub c: u8, }";
    let of: Configuration = syn::parse_str(text).expect("a configuration");
    assert_eq!((&of.name[..], of.fields), ("C", 3));
}

#[test]
fn no_type_has_more_methods_than_a_reader_can_hold() {
    METHODS_OF_A_TYPE.assert(|sizes| &sizes.methods);
}

#[test]
fn no_struct_has_more_fields_than_parts_of_one_thing() {
    FIELDS_OF_A_STRUCT.assert(|sizes| &sizes.fields);
}

/// The lines of `text` without what is compiled for tests alone. As formatted, such an item ends with its line, or
/// with a brace below its attribute.
fn lines_without_tests(text: &str) -> usize {
    let mut lines = text.lines();
    let mut count = 0;
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            count += 1;
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let item = lines.find(|line| !line.trim_start().starts_with("#["));
        if item.is_some_and(|item| !item.ends_with([';', ',', '}'])) {
            lines.find(|line| line.strip_prefix(indent).is_some_and(|end| end.starts_with('}')));
        }
    }
    count
}

#[test]
fn lines_of_tests_do_not_count() {
    let text = "//! A.\n\n#[cfg(test)]\nmod a;\nfn b() {\n    #[cfg(test)]\n    if c {\n        d();\n    }\n}\n\
                #[cfg(test)]\n#[e]\nmod tests {\n    fn f() {}\n}\n";
    assert_eq!(lines_without_tests(text), 4);
}

#[test]
fn no_crate_grows_beyond_its_lines() {
    for &(krate, most) in LINES {
        let mut found = Vec::new();
        sources(&crates().join(krate).join("src"), &mut found);
        let read = |path| std::fs::read_to_string(path).expect("readable sources");
        let lines: usize = found.into_iter().map(|path| lines_without_tests(&read(path))).sum();
        assert!(lines <= most, "{krate} has {lines} lines without tests, {most} at most");
    }
}

/// The calls in a file.
#[derive(Default)]
struct Calls {
    /// The name of the receiver, if it has one, and the method.
    methods: Vec<(Option<String>, String)>,
    /// The type and the function.
    functions: Vec<(String, String)>,
}

impl<'ast> Visit<'ast> for Calls {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.methods.push((receiver(&call.receiver), call.method.to_string()));
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let names: Vec<String> =
            path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let [.., kind, function] = &names[..] {
            self.functions.push((kind.clone(), function.clone()));
        }
    }
}

fn receiver(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Field(ExprField { member: Member::Named(name), .. }) => Some(name.to_string()),
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Index(index) => receiver(&index.expr),
        Expr::Reference(reference) => receiver(&reference.expr),
        _ => None,
    }
}

/// The calls between rooms, found by the names of receivers and by methods that only one room has.
fn calls_between_rooms(files: &[(PathBuf, syn::File)]) -> Calling {
    let room_of = |path: &Path| {
        let first = path.components().next().expect("a name").as_os_str();
        Path::new(first).file_stem().expect("a name").to_string_lossy().into_owned()
    };
    let (mut methods, mut functions) = (Owners::new(), Owners::new());
    for (path, file) in files {
        let mut found = Functions::default();
        found.visit_file(file);
        for (kind, name, is_method) in found.0 {
            functions.entry(format!("{kind}::{name}")).or_default().insert(room_of(path));
            if is_method {
                methods.entry(name).or_default().insert(room_of(path));
            }
        }
    }
    let by_name = |name: &str| ROOMS.iter().find(|(_, names)| names.contains(&name));
    let mut calls = Calling::new();
    for (path, file) in files {
        let from = room_of(path);
        assert!(
            from == "lib" || from == "statistics" || ROOMS.iter().any(|(room, _)| *room == from),
            "{from} is a room that this test does not know"
        );
        let mut found = Calls::default();
        found.visit_file(file);
        let of_methods = found.methods.into_iter().filter_map(|(receiver, name)| {
            let of = methods.get(&name)?;
            if receiver.as_deref().is_some_and(|name| BELOW.contains(&name)) {
                return None;
            }
            let named = receiver.as_deref().and_then(by_name).map(|(room, _)| *room);
            match named {
                Some(room) if of.contains(room) => Some((room.to_owned(), name)),
                _ if STANDARD.contains(&&*name) => None,
                _ => only(of).map(|room| (room, name)),
            }
        });
        let of_functions = found.functions.into_iter().filter_map(|(kind, name)| {
            let name = format!("{kind}::{name}");
            Some((only(functions.get(&name)?)?, name))
        });
        for (to, name) in of_methods.chain(of_functions).filter(|(to, _)| *to != from) {
            let place = format!("{}: {name}", path.display());
            calls.entry(from.clone()).or_default().entry(to).or_insert(place);
        }
    }
    calls
}

/// From which room to which, and a place and the method called.
type Calling = BTreeMap<String, BTreeMap<String, String>>;
type Owners = BTreeMap<String, BTreeSet<String>>;

fn only(rooms: &BTreeSet<String>) -> Option<String> {
    if rooms.len() == 1 { rooms.first().cloned() } else { None }
}

/// The functions that a file defines for types, except those of traits: the type, the name, and whether it is a method.
#[derive(Default)]
struct Functions(Vec<(String, String, bool)>);

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let (None, Some(kind)) = (&item.trait_, name_of(&item.self_ty)) else { return };
        for inner in &item.items {
            if let syn::ImplItem::Fn(method) = inner {
                let name = method.sig.ident.to_string();
                self.0.push((kind.clone(), name, method.sig.receiver().is_some()));
            }
        }
    }
}

/// The calls that are part of a cycle of rooms, or lead from one cycle to another.
fn on_cycles(calls: &Calling) -> Vec<String> {
    let mut left: BTreeSet<&String> = calls.keys().collect();
    // Rooms that call nothing that is left, or that nothing calls, are taken away until none is.
    loop {
        let calls_left = |room: &str| calls[room].keys().any(|to| left.contains(to));
        let is_called = |room: &String| left.iter().any(|&from| calls[from].contains_key(room));
        let remaining: BTreeSet<&String> =
            left.iter().copied().filter(|room| calls_left(room) && is_called(room)).collect();
        if remaining.len() == left.len() {
            break;
        }
        left = remaining;
    }
    let on_cycle = left.iter().flat_map(|from| {
        let to = calls[*from].iter().filter(|(to, _)| left.contains(to));
        to.map(move |(to, place)| format!("{from} → {to} ({place})"))
    });
    on_cycle.collect()
}

#[test]
fn no_rooms_of_recovery_call_each_other_in_a_cycle() {
    let calls = calls_between_rooms(&files("recovery"));
    assert!(calls.get("recovery").is_some_and(|to| to.len() >= 8), "it calls the mechanisms");
    let on_cycle = on_cycles(&calls);
    assert!(on_cycle.is_empty(), "rooms call each other:\n{}", on_cycle.join("\n"));
}

#[test]
fn a_cycle_of_rooms_is_reported_with_its_calls() {
    let files = |back: &str| {
        written(&[
            ("loss/mod.rs", "impl LossDetector { fn detect(&self) { self.probe.arm_probe(); } }"),
            (
                "probe/mod.rs",
                "impl ProbeTimer { fn arm_probe(&self) { self.groups.settle_thin(); } }",
            ),
            ("thin.rs", &format!("impl Groups {{ fn settle_thin(&self) {{ {back} }} }}")),
            ("recovery/mod.rs", "impl LossRecovery { fn run(&self) { self.loss.detect(); } }"),
        ])
    };
    let reported = |back| on_cycles(&calls_between_rooms(&files(back)));
    assert_eq!(reported("self.count()"), Vec::<String>::new());
    let cycle = [
        "loss → probe (loss/mod.rs: arm_probe)",
        "probe → thin (probe/mod.rs: settle_thin)",
        "thin → loss (thin.rs: detect)",
    ];
    assert_eq!(reported("loss.detect()"), cycle);
}
