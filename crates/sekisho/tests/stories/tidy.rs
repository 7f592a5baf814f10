//! The house stays tidy: rooms know each other in one direction, files have one subject, both READMEs say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Longer files are two subjects. Tests may be longer: a list of cases reads well in one piece; and so do tables.
const LINES_MAX: usize = 400;
/// Files that are one table, an entry after another.
const TABLES: [&str; 1] = ["sekisho/config/settings.rs"];

const CRATES: [&str; 5] = ["core", "store", "sekisho", "demo", "lab"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a crate lies beside others").to_owned()
}

/// Every Rust file below a folder, with its path from there.
fn files(folder: &Path) -> Vec<(String, String)> {
    texts(folder, &["rs"])
}

/// The same of these kinds of files.
fn texts(folder: &Path, kinds: &[&str]) -> Vec<(String, String)> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|kind| kinds.iter().any(|wanted| kind == *wanted)) {
                let own = path.strip_prefix(folder).expect("it lies below").display().to_string();
                found.push((own, fs::read_to_string(&path).expect("it is a text")));
            }
        }
    }
    found.sort();
    found
}

fn is_test(path: &str) -> bool {
    path.split(['/', '.']).any(|part| part == "tests")
}

/// Without what is only there for tests.
fn shipped(text: &str) -> &str {
    let tests = [
        "#[cfg(test)]\nmod tests {",
        "#[cfg(test)]\npub mod tests {",
        "#[cfg(test)]\npub(crate) mod tests {",
    ];
    tests.iter().filter_map(|start| text.find(start)).min().map_or(text, |end| &text[..end])
}

/// Which rooms of a crate name which others.
fn edges(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let files = files(folder);
    let room = |path: &str| path.split(['/', '.']).next().unwrap_or_default().to_owned();
    let rooms: BTreeSet<String> = files.iter().map(|(path, _)| room(path)).collect();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| !is_test(path)) {
        let own = room(path);
        if ["lib", "main"].contains(&&*own) {
            continue;
        }
        for named in named_rooms(&code(text)).filter(|named| rooms.contains(*named) && *named != own) {
            edges.entry(own.clone()).or_default().insert(named.to_owned());
        }
    }
    edges
}

/// What is shipped, without comments.
fn code(text: &str) -> String {
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    shipped(text).lines().filter(|line| !is_comment(line)).collect::<Vec<_>>().join("\n")
}

/// What follows `crate::`, one name or a list of them.
fn named_rooms(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("crate::").flat_map(|(at, start)| {
        let rest = &code[at + start.len()..];
        let list = rest.strip_prefix('{').map(|list| &list[..list.find(';').unwrap_or(list.len())]);
        let count = if list.is_some() { usize::MAX } else { 1 };
        list.unwrap_or(rest).split(|part: char| !part.is_alphanumeric() && part != '_').take(count)
    })
}

/// A way from a room back to itself, if there is one.
fn cycle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk(
        edges: &BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<String>,
        over: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        let here = way.last().expect("it begins somewhere").clone();
        for next in edges.get(&here).into_iter().flatten() {
            if let Some(at) = way.iter().position(|room| room == next) {
                return Some([&way[at..], std::slice::from_ref(next)].concat());
            }
            if !over.contains(next) {
                way.push(next.clone());
                if let Some(found) = walk(edges, way, over) {
                    return Some(found);
                }
                way.pop();
            }
        }
        over.insert(here);
        None
    }
    let mut over = BTreeSet::new();
    edges.keys().find_map(|room| walk(edges, &mut vec![room.clone()], &mut over))
}

#[test]
fn no_two_rooms_of_a_crate_need_each_other() {
    for name in CRATES {
        let found = cycle(&edges(&crates().join(name).join("src")));
        assert_eq!(found, None, "{name}: a type or a constant lies in the wrong room");
    }
}

#[test]
fn a_cycle_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.rs", "use crate::{\n    c,\n    b::B,\n};\n");
    write("b.rs", "// crate::a\nuse crate::c;\n");
    write("c.rs", "pub struct C;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n");
    assert_eq!(cycle(&edges(folder.path())), None);
    write("c.rs", "fn c() -> crate::a::A {}\n");
    assert_eq!(cycle(&edges(folder.path())).unwrap(), ["a", "b", "c", "a"]);
}

#[test]
fn a_file_has_one_subject() {
    let mut long = Vec::new();
    for name in CRATES {
        for (path, text) in files(&crates().join(name).join("src")) {
            let lines = shipped(&text).lines().count();
            let path = format!("{name}/{path}");
            let may_be_long = is_test(&path) || path.contains("conformance") || TABLES.contains(&&*path);
            if !may_be_long && lines > LINES_MAX {
                long.push(format!("{path}: {lines} lines"));
            }
        }
    }
    assert_eq!(long, [""; 0], "it has two subjects; what is one table is named in TABLES");
}

/// Where the binary commits: the loop that decides again when others were faster, the end of leased work, and what a
/// measurement puts into an empty store.
const COMMITS: [&str; 3] = ["cli/bench/fill.rs", "engine/completer.rs", "transact.rs"];

#[test]
fn what_is_kept_is_changed_in_one_loop() {
    // Between the store and its verb rustfmt may break the line.
    let commits = |text: &str| text.split_whitespace().collect::<String>().contains("store.commit(");
    let of_tests = ["view/samples.rs"];
    let found: Vec<_> = files(&crates().join("sekisho/src"))
        .into_iter()
        .filter(|(path, text)| !is_test(path) && commits(shipped(text)))
        .map(|(path, _)| path)
        .filter(|path| !of_tests.contains(&&**path))
        .collect();
    assert_eq!(found, COMMITS, "hand the rule to `transact`");
}

/// Files and folders whose JSON has no type of ours, and what it is.
const UNTYPED: [(&str, &str); 4] = [
    ("api/openapi.rs", "a document in the form of OpenAPI"),
    ("cli/notify.rs", "variables of a template, which people may write themselves"),
    ("effects/", "what other servers say"),
    ("view/samples.rs", "events of providers, for tests"),
];

/// Files that are yet to read the details of audit entries by their type, `ChangeDetails`, with their look-ups.
const LOOK_UPS: [(&str, usize); 2] = [("console/event/changes.rs", 4), ("console/payments/timeline.rs", 7)];

#[test]
fn what_has_a_type_is_read_by_it() {
    let is_of_others = |path: &str| UNTYPED.iter().any(|(of_others, _)| path.starts_with(of_others));
    let files = files(&crates().join("sekisho/src")).into_iter().filter(|(path, _)| !is_test(path));
    let mut found: Vec<_> = files
        .filter(|(path, _)| !is_of_others(path))
        .map(|(path, text)| (path, look_ups(&code(&text))))
        .filter(|(_, count)| *count > 0)
        .collect();
    found.retain(|(path, count)| !LOOK_UPS.iter().any(|(known, most)| path == known && count <= most));
    assert_eq!(found, [], "read it into its type: the answers of the API have theirs in types/");
}

/// How often a field is looked up by its name: `value["field"]`.
fn look_ups(code: &str) -> usize {
    let name =
        |rest: &str| rest.bytes().take_while(|byte| byte.is_ascii_lowercase() || *byte == b'_').count();
    let ends = |rest: &str| rest[name(rest)..].starts_with("\"]");
    let of_value =
        |before: &str| before.ends_with(|last: char| last.is_alphanumeric() || "_)]".contains(last));
    let found = code.match_indices("[\"").filter(|(at, _)| of_value(&code[..*at]) && ends(&code[at + 2..]));
    found.count()
}

#[test]
fn a_look_up_is_found() {
    assert_eq!(look_ups(r#"value["field"]["other"] = shown(one)["id"]"#), 3);
    assert_eq!(look_ups(r#"["list"], &["list"], value[name], value["two words"], vec!["a"]"#), 0);
}

#[test]
fn no_chance_decides_which_branch_is_taken() {
    let asks_in_order = |text: &str| {
        let mut all = text.split("select! {").skip(1);
        all.all(|body| body.trim_start().starts_with("biased;"))
    };
    let random: Vec<_> = files(&crates().join("sekisho/src"))
        .into_iter()
        .filter(|(path, text)| !is_test(path) && !path.starts_with("cli/") && !asks_in_order(shipped(text)))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(random, [""; 0], "begin `select!` with `biased;`: stop first, then timers, then work");
}

const METHODS_MAX: usize = 12;

#[test]
fn a_type_has_few_public_methods() {
    let mut found = Vec::new();
    for name in ["core", "store", "sekisho"] {
        for (path, text) in files(&crates().join(name).join("src")) {
            if !is_test(&path) && path != "settlement/world.rs" {
                let many = public_methods(&code(&text)).into_iter().filter(|(_, count)| *count > METHODS_MAX);
                found.extend(many.map(|(of, count)| (format!("{name}/{path}"), of, count)));
            }
        }
    }
    assert_eq!(found, [], "it has two subjects");
}

fn public_methods(code: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let mut of = None;
    for line in code.lines() {
        if let Some(head) = line.strip_prefix("impl") {
            let name = head.split_once(' ').map(|(_, name)| name).filter(|_| !head.contains(" for "));
            let is_word = |part: &char| part.is_alphanumeric() || *part == '_';
            of = name.map(|name| name.chars().take_while(is_word).collect());
        } else if line == "}" {
            of = None;
        } else if let Some(of) = &of {
            let is_method = line.starts_with("    pub ") && line.contains("fn ");
            *counts.entry(String::clone(of)).or_default() += usize::from(is_method);
        }
    }
    counts
}

/// Public types that share a name on purpose: siblings of one shape, named by their module where they meet
/// (`stripe::Client`, `slack::Settings`, `store::Result`), and services that are a provider and a channel or a stand-in.
const SIBLINGS: [&str; 12] = [
    "Answer",
    "Args",
    "Client",
    "Command",
    "Conditions",
    "List",
    "Reply",
    "Result",
    "Settings",
    "Slack",
    "Stripe",
    "Twilio",
];
/// Where the same thing has the same name: as the API shows it, and as the file configures it.
const SAME_THINGS: [&str; 2] = ["sekisho/types", "sekisho/config"];

#[test]
fn an_imported_name_has_one_meaning() {
    let (mut defined, mut imported) = (BTreeMap::<String, Vec<String>>::new(), BTreeSet::new());
    for name in CRATES {
        for (path, text) in
            files(&crates().join(name).join("src")).into_iter().filter(|(path, _)| !is_test(path))
        {
            let (code, place) = (code(&text), format!("{name}/{path}"));
            if !SAME_THINGS.iter().any(|room| place.starts_with(room)) {
                for of in public_types(&code) {
                    defined.entry(of.to_owned()).or_default().push(place.clone());
                }
            }
            imported.extend(imported_types(&code).map(str::to_owned));
        }
    }
    defined.retain(|of, places| places.len() > 1 && imported.contains(of));
    let over: Vec<_> = SIBLINGS.iter().filter(|name| !defined.contains_key(**name)).collect();
    assert_eq!(over, [&""; 0], "these have one meaning by now: take them off the list");
    defined.retain(|of, _| !SIBLINGS.contains(&&**of));
    assert_eq!(defined, BTreeMap::new(), "give it a name of its own");
}

fn words_of(code: &str) -> impl Iterator<Item = &str> {
    code.split(|part: char| !part.is_alphanumeric() && part != '_')
}

fn public_types(code: &str) -> impl Iterator<Item = &str> {
    code.lines().map(str::trim_start).filter(|line| line.starts_with("pub")).filter_map(|line| {
        let mut words = words_of(line);
        words.any(|word| ["struct", "enum", "trait", "type"].contains(&word)).then(|| words.next())?
    })
}

fn imported_types(code: &str) -> impl Iterator<Item = &str> {
    let begins_line = |at: usize| {
        let before = code[..at].rsplit('\n').next().unwrap_or_default().trim_start();
        before.is_empty() || before.starts_with("pub")
    };
    let uses = code.match_indices("use ").filter(move |(at, _)| begins_line(*at));
    let lists = uses.map(|(at, _)| code[at..].split(';').next().unwrap_or_default());
    lists.flat_map(words_of).filter(|word| word.starts_with(char::is_uppercase))
}

#[test]
fn names_are_found() {
    let code = "use a::B;\npub use c::{D,\n    e::F};\npub(super) enum G {}\n    pub struct H<I>;\nstruct J;\nbecause use K;";
    assert_eq!(imported_types(code).collect::<Vec<_>>(), ["B", "D", "F"]);
    assert_eq!(public_types(code).collect::<Vec<_>>(), ["G", "H"]);
}

/// Commands that may know of a store: those that fill one of their own, to measure or to show.
const STORE_KNOWN: [&str; 2] = ["cli/bench", "cli/demo"];

#[test]
fn commands_use_the_api() {
    let is_allowed = |path: &str| STORE_KNOWN.iter().any(|known| path.starts_with(known));
    let is_command = |path: &str| path.starts_with("cli/") || path == "cli.rs";
    let mut files = files(&crates().join("sekisho/src"));
    files.retain(|(path, _)| is_command(path));
    assert!(files.len() > 50, "only {} files were looked at", files.len());
    let direct: Vec<_> = files
        .iter()
        .filter(|(path, text)| !is_allowed(path) && shipped(text).contains("sekisho_store::"))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(direct, [""; 0], "a command asks the API, whether a server runs or not");
}

fn root() -> PathBuf {
    crates().parent().expect("crates lie in the project").to_owned()
}

#[test]
fn both_readmes_have_the_same_sections() {
    let root = root();
    let shape = |name: &str| -> Vec<usize> {
        let text = fs::read_to_string(root.join(name)).expect("the README is there");
        let mut in_code = false;
        let mut shape = Vec::new();
        for line in text.lines() {
            in_code ^= line.starts_with("```");
            if !in_code && line.starts_with('#') {
                shape.push(line.bytes().take_while(|byte| *byte == b'#').count());
            }
        }
        shape
    };
    assert_eq!(shape("README.md"), shape("README.ja.md"));
}

#[test]
fn documents_stay_short() {
    for (name, kilobytes) in [("README.md", 10), ("README.ja.md", 10), ("ARCHITECTURE.md", 15)] {
        let bytes = fs::metadata(root().join(name)).expect("the document is there").len();
        assert!(bytes <= kilobytes << 10, "{name} has {bytes} bytes: move something to docs/");
    }
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the document is there");
    let walk = text.split("\n## ").find(|part| part.starts_with("One walk")).expect("it has a walk");
    let is_row =
        |line: &&str| line.starts_with("| ") && line[2..].starts_with(|first: char| first.is_ascii_digit());
    assert!((1..=12).contains(&walk.lines().filter(is_row).count()), "the walk of an event became long");
}

/// Documents that lead developers to files, beside the decisions in docs/adr.
const LEADS: [&str; 6] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/reference/crash-points.md",
    "docs/reference/life-of-a-job.md",
    "docs/reference/walks.md",
    "docs/reference/where-to-change.md",
];

#[test]
fn documents_name_files_that_exist() {
    let known: Vec<_> = files(&crates()).into_iter().map(|(path, _)| format!("/crates/{path}")).collect();
    let exists = |file: &str| {
        let inner = file.split_once('/').filter(|(first, _)| CRATES.contains(first));
        let whole = inner.map(|(of, rest)| format!("/crates/{of}/src/{rest}"));
        let is_it = |path: &String| match &whole {
            Some(whole) => path == whole || *path == format!("/crates/{file}"),
            None => path.ends_with(&format!("/{file}")),
        };
        known.iter().any(is_it)
    };
    let decisions =
        texts(&root().join("docs/adr"), &["md"]).into_iter().map(|(name, _)| format!("docs/adr/{name}"));
    let mut missing = Vec::new();
    for name in LEADS.into_iter().map(str::to_owned).chain(decisions) {
        let text = fs::read_to_string(root().join(&name)).expect("the document is there");
        let is_file =
            |part: &&str| Path::new(part).extension().is_some_and(|kind| kind == "rs") && !part.contains(' ');
        let quoted = text.split('`').skip(1).step_by(2).filter(is_file);
        missing.extend(quoted.filter(|file| !exists(file)).map(|file| format!("{name}: {file}")));
    }
    assert_eq!(missing, [""; 0]);
}

/// What people read must say it in the words of the trade. Each is looked for as whole words, also with a capital at
/// its beginning; one in quotes begins or is a text. Instead of it stands what `docs/glossary.md` says.
const FORBIDDEN: &[&str] = &[
    // books and payments
    "money came",
    "given back",
    "\"Asked for\"",
    "\"Known as\"",
    "\"About it\"",
    "who told them",
    "told by",
    "heard of",
    "\"Decided\"",
    "\"Announced\"",
    // overview and lists
    "turned away",
    "attack attempts",
    "needs a person",
    "whether or not",
    "is like that",
    "settled again",
    "be settled",
    "is settled",
    "are settled",
    "(or settled)",
    // dead letters
    "what died",
    "\"Died\"",
    "died since",
    "that died",
    "\"Worth\"",
    "will not pass",
    "may pass",
    "never again",
    "put aside",
    // routes and channels
    "left alone",
    "open for traffic",
    "is shut",
    "messages take",
    "to mend",
    "mend it",
    // users and keys
    "\"Rank",
    "shut out",
    "shut somebody",
    "last entered",
    "\"Come in\"",
    "may come in",
    "keys to the API",
    "\"May\"",
    "\"Begins with\"",
    "make a key",
    // notices
    "who was told",
    "\"Written\"",
    // commands
    "is sound",
    "go on?",
    "say which",
    "commas between",
    "split by commas",
    "when not written",
    // errors
    "contradicts what",
    "makes no sense",
    "no such thing",
    "\"Not now\"",
    // audit and retention
    "stands in the audit log",
    "slipped in",
    "lets go of",
    "let go by",
    // logs
    "ended unasked",
    // one vocabulary in Japanese, too
    "過払い",
    "チャネル",
    "通知経路",
    "APIキー",
    "異議申し立て",
    "監査記録",
];

/// The lines of a file that may hold what people read: all but comments. In commands `///` is their help, in the types of
/// the API their description.
fn readable(path: &str, text: &str) -> Vec<(usize, String)> {
    let is_shown = ["src/cli", "src/types"].iter().any(|room| path.starts_with(room));
    let is_help = |line: &str| is_shown && line.starts_with("///");
    let is_comment = |line: &str| line.starts_with("//") && !is_help(line);
    let lines = shipped(text).lines().enumerate();
    lines.map(|(n, line)| (n + 1, line.trim().to_owned())).filter(|(_, line)| !is_comment(line)).collect()
}

/// Whether the words stand there and no longer ones around them.
fn says(line: &str, words: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    let starts = is_letter(words.chars().next());
    let ends = is_letter(words.chars().next_back());
    line.match_indices(words).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + words.len()..].chars().next();
        !(starts && is_letter(before) || ends && is_letter(after))
    })
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

#[test]
fn words() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_read =
        |path: &str| ["templates/", "src/"].iter().any(|room| path.starts_with(room)) && !is_test(path);
    let mut shown: Vec<_> =
        texts(own, &["rs", "html"]).into_iter().filter(|(path, _)| is_read(path)).collect();
    let guides = texts(&root().join("docs/guides"), &["md"]).into_iter();
    shown.extend(guides.map(|(path, text)| (format!("docs/guides/{path}"), text)));
    shown.extend(
        ["README.md", "README.ja.md"].map(|name| {
            (name.to_owned(), fs::read_to_string(root().join(name)).expect("the README is there"))
        }),
    );
    let mut read = 0;
    let mut found = Vec::new();
    for (path, text) in shown {
        read += 1;
        for (n, line) in readable(&path, &text) {
            let old = FORBIDDEN.iter().filter(|words| says(&line, words) || says(&line, &capital(words)));
            found.extend(old.map(|words| format!("{path}:{n}: {words}")));
        }
    }
    assert!(read > 100, "only {read} files were looked at");
    assert_eq!(found, [""; 0], "say it in the words of the trade");
}

#[test]
fn words_are_found_whole() {
    assert!(says("t(\"money came\", \"入金\")", "money came") && says("過払いを検知", "過払い"));
    assert!(!says("the money camera", "money came") && !says("is shutting down", "is shut"));
    let text = "/// is shut\n// is shut\nlet a = \"is shut\";\n#[cfg(test)]\nmod tests {\n\"is shut\"";
    assert_eq!(readable("src/cli/users.rs", text).len(), 2);
    assert_eq!(readable("src/api/users.rs", text).len(), 1);
}
