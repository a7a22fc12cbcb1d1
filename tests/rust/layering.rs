//! The floors of the engine: a module imports only what stands beneath it, or a neighbour in its own folder.

use std::fs;
use std::path::{Path, PathBuf};

const FLOORS: &[&[&str]] = &[
    &["error", "author", "find", "threads", "top_logprobs"],
    &["message", "row", "columns", "advantage", "plan"],
    &["template", "tokenizer", "tree"],
    &["mask"],
    &["render"],
    &["bridge", "parse"],
    &["audit"],
    &["trajectory", "merge"],
    &["group"],
    &["arrow"],
    &["pack"],
    &["verify"],
    &["python"],
];

fn floor(module: &str) -> usize {
    FLOORS
        .iter()
        .position(|names| names.contains(&module))
        .unwrap_or_else(|| panic!("module `{module}` stands on no floor: add it to FLOORS"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let own = files.into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs"));
    own.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// The modules that a source names by `crate::module`, braces included.
fn imported(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    for tail in source.split("crate::").skip(1) {
        let list = tail.strip_prefix('{').map_or(tail, |inner| inner.split_once("};").map_or(inner, |cut| cut.0));
        let parts = if tail.starts_with('{') { list.split(',').collect() } else { vec![list] };
        for part in parts {
            let name: String = part.trim().chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            if FLOORS.iter().any(|names| names.contains(&name.as_str())) {
                names.push(name);
            }
        }
    }
    names
}

#[test]
fn imports_point_downwards() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("rust");
    for path in sources(&root) {
        let relative = path.strip_prefix(&root).unwrap();
        let module = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        for name in imported(&fs::read_to_string(&path).unwrap()) {
            assert!(
                name == module || floor(&name) < floor(module),
                "{} imports `{name}`, which does not stand beneath `{module}`",
                relative.display()
            );
        }
    }
}

#[test]
fn the_check_reads_braces() {
    assert_eq!(imported("use crate::{error::Error, group};"), ["error", "group"]);
}
