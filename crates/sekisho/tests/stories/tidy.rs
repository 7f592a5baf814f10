//! The house stays tidy: rooms know each other in one direction, files have one subject, both READMEs say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Longer files are two subjects. Tests may be longer: a list of cases reads well in one piece.
const LINES_MAX: usize = 400;

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
        for line in shipped(text).lines().filter(|line| !line.trim_start().starts_with("//")) {
            for (at, _) in line.match_indices("crate::") {
                let named = line[at + "crate::".len()..]
                    .split(|letter: char| !letter.is_alphanumeric() && letter != '_');
                let named = named.into_iter().next().unwrap_or_default();
                if rooms.contains(named) && named != own {
                    edges.entry(own.clone()).or_default().insert(named.to_owned());
                }
            }
        }
    }
    edges
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
    for name in ["core", "sekisho"] {
        let found = cycle(&edges(&crates().join(name).join("src")));
        assert_eq!(found, None, "{name}: a type or a constant lies in the wrong room");
    }
}

#[test]
fn a_file_has_one_subject() {
    let mut long = Vec::new();
    for name in ["core", "store", "sekisho", "demo", "lab"] {
        for (path, text) in files(&crates().join(name).join("src")) {
            let lines = shipped(&text).lines().count();
            if !is_test(&path) && !path.contains("conformance") && lines > LINES_MAX {
                long.push(format!("{name}/{path}: {lines} lines"));
            }
        }
    }
    // What is longer already may only become shorter.
    let is_new = |line: &String| !LONG.iter().any(|known| is_within(line, known));
    long.retain(is_new);
    assert_eq!(long, [""; 0]);
}

/// Files that are yet to be divided, with their lines.
const LONG: [(&str, usize); 13] = [
    ("core/provider.rs", 548),
    ("core/settlement/paypal.rs", 402),
    ("demo/load.rs", 444),
    ("lab/browser/page.rs", 409),
    ("lab/torture/faults.rs", 409),
    ("sekisho/checkpoint/receive.rs", 520),
    ("sekisho/cli/demo/proof.rs", 406),
    ("sekisho/config/route.rs", 415),
    ("sekisho/config/settings.rs", 605),
    ("sekisho/config/source.rs", 428),
    ("store/memory.rs", 677),
    ("store/postgres/connection.rs", 430),
    ("store/postgres/work.rs", 458),
];

fn is_within(line: &str, (path, most): &(&str, usize)) -> bool {
    let lines = line.strip_prefix(path).and_then(|rest| rest.strip_prefix(": ")?.strip_suffix(" lines"));
    lines.and_then(|lines| lines.parse::<usize>().ok()).is_some_and(|lines| lines <= *most)
}

/// Where the binary commits: the loop that decides again when others were faster, and what is not decided at all.
const COMMITS: [&str; 4] = [
    "transact.rs",
    "cli/bench/fill.rs",
    // Leased work, whose end is committed with what follows from it.
    "engine/",
    "jobs/",
];

#[test]
fn what_is_kept_is_changed_in_one_loop() {
    let is_allowed = |path: &str| COMMITS.iter().any(|place| path.starts_with(place));
    // Between the store and its verb rustfmt may break the line.
    let commits = |text: &str| text.split_whitespace().collect::<String>().contains("store.commit(");
    let of_tests = ["view/samples.rs"];
    let found: Vec<_> = files(&crates().join("sekisho/src"))
        .into_iter()
        .filter(|(path, text)| !is_test(path) && !is_allowed(path) && commits(shipped(text)))
        .map(|(path, _)| path)
        .filter(|path| !of_tests.contains(&&**path))
        .collect();
    assert_eq!(found, [""; 0], "hand the rule to `transact`");
}

/// Where commands may know of a store: those that serve, measure or mend one, and the client, which opens it where no
/// server runs.
const STORE_KNOWN: [&str; 7] =
    ["bench", "client/local.rs", "demo", "doctor.rs", "migrate.rs", "serve.rs", "server_file.rs"];

#[test]
fn commands_use_the_api() {
    let is_allowed = |path: &str| STORE_KNOWN.iter().any(|known| path.starts_with(known));
    let files = files(&crates().join("sekisho/src/cli"));
    assert!(files.len() > 50, "only {} files were looked at", files.len());
    let direct: Vec<_> = files
        .iter()
        .filter(|(path, text)| !is_allowed(path) && shipped(text).contains("sekisho_store::"))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(direct, [""; 0], "a command asks the API, whether a server runs or not");
}

#[test]
fn both_readmes_have_the_same_sections() {
    let root = crates().parent().expect("crates lie in the project").to_owned();
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

/// The lines of a file that may hold what people read: all but comments. In commands `///` is their help.
fn readable(path: &str, text: &str) -> Vec<(usize, String)> {
    let is_help = |line: &str| path.starts_with("src/cli") && line.starts_with("///");
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
    let rooms = ["templates/", "src/console", "src/cli", "src/api", "src/view", "src/http.rs", "src/config"];
    let is_read = |path: &str| rooms.iter().any(|room| path.starts_with(room)) && !is_test(path);
    let mut read = 0;
    let mut found = Vec::new();
    for (path, text) in texts(own, &["rs", "html"]).into_iter().filter(|(path, _)| is_read(path)) {
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
