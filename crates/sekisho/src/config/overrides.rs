//! The operator's own templates: a folder of files over the shipped ones. Everything that is wrong with the folder or
//! in a file is said at once, with the file's path. Hidden files and what editors leave behind are passed over.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sekisho_core::notification::{Flaw, Templates};

const FILES_MAX: usize = 500;
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// The shipped templates with those of this folder over them, checked.
pub fn load(folder: &Path) -> Result<Templates, Vec<Flaw>> {
    let (files, mut flaws) = read(folder);
    match Templates::with(files) {
        Ok(templates) if flaws.is_empty() => return Ok(templates),
        Ok(_) => {}
        Err(more) => {
            flaws.extend(more.into_iter().map(|flaw| Flaw { file: path(folder, &flaw.file), ..flaw }));
        }
    }
    flaws.sort();
    Err(flaws)
}

/// Each file with its content, and what could not be read.
fn read(folder: &Path) -> (Vec<(String, String)>, Vec<Flaw>) {
    let flaw = |problem: String| Flaw { file: folder.display().to_string(), line: None, problem };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            return (Vec::new(), vec![flaw(format!("can't read the folder of templates: {error}"))]);
        }
    };
    let (mut files, mut flaws) = (Vec::new(), Vec::new());
    for entry in entries {
        let name = match entry {
            Ok(entry) => entry.file_name(),
            Err(error) => {
                flaws.push(flaw(format!("can't read the folder of templates: {error}")));
                break;
            }
        };
        let Some(name) = name.to_str() else {
            flaws.push(flaw(format!("the name of {} is not UTF-8: rename it", name.display())));
            continue;
        };
        if name.starts_with('.') || name.ends_with('~') {
            continue;
        }
        if files.len() == FILES_MAX {
            flaws.push(flaw(format!("more than {FILES_MAX} files; is this the folder of templates?")));
            break;
        }
        match content(&folder.join(name)) {
            Ok(content) => files.push((name.to_owned(), content)),
            Err(problem) => flaws.push(Flaw { file: path(folder, name), line: None, problem }),
        }
    }
    (files, flaws)
}

fn content(path: &Path) -> Result<String, String> {
    let metadata = std::fs::metadata(path).map_err(|error| format!("can't read it: {error}"))?;
    // A pipe would never end.
    if !metadata.is_file() {
        return Err("no file: only files may lie in the folder of templates".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("can't read it: {error}"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("larger than {} KiB", FILE_BYTES_MAX / 1024));
    }
    String::from_utf8(bytes).map_err(|_| "not UTF-8: save it in that encoding".to_owned())
}

fn path(folder: &Path, file: &str) -> String {
    folder.join(file).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a folder that holds these files, without its path.
    fn check(files: &[(&str, &[u8])]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let prefix = format!("{}/", folder.path().display());
        let flaws = load(folder.path()).err().unwrap_or_default();
        flaws.iter().map(|flaw| flaw.to_string().replace(&prefix, "")).collect()
    }

    #[test]
    fn g3_a_folder_of_templates_is_read_whole_or_refused_by_file() {
        let good = b"Subject: hello\n\nGood day\n".as_slice();
        assert!(check(&[]).is_empty());
        assert!(check(&[("test.en.txt", good), (".DS_Store", b"\xff"), ("test.en.txt~", b"")]).is_empty());
        let large = vec![b'x'; FILE_BYTES_MAX as usize + 1];
        let cases: [(&str, &[u8], &str); 4] = [
            ("test.en.txt", b"\xff", "test.en.txt: not UTF-8: save it in that encoding"),
            ("test.en.txt", &large, "test.en.txt: larger than 256 KiB"),
            ("test.en.txt", b"Hello", "test.en.txt:1: the first line must be `Subject: …`"),
            ("test.xx.txt", good, "test.xx.txt: there is no language `xx`; known are ja and en"),
        ];
        for (name, content, expected) in cases {
            assert_eq!(check(&[(name, content)]), [expected]);
        }
        let two = check(&[("test.en.txt", b"\xff"), ("test.ja.txt", b"")]);
        assert_eq!(two.len(), 2, "all at once: {two:?}");
    }

    #[test]
    fn g3_what_is_no_folder_of_templates_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let gone = load(&folder.path().join("gone")).unwrap_err();
        assert!(gone[0].to_string().contains("gone: can't read the folder"), "{gone:?}");
        std::fs::create_dir(folder.path().join("more")).unwrap();
        let nested = load(folder.path()).unwrap_err();
        assert!(nested[0].to_string().contains("more: no file"), "{nested:?}");
        for n in 0..=FILES_MAX {
            std::fs::write(folder.path().join(format!("mine-{n}.ja.txt")), "Subject: x\n\nx\n").unwrap();
        }
        let many = load(folder.path()).unwrap_err();
        assert!(many.iter().any(|flaw| flaw.problem.starts_with("more than 500 files")));
    }
}
