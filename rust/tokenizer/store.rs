//! What was learned of tokenizer files, kept on disk between processes: their compiled form, and that it passed the
//! self-check.
//!
//! *Invariant*: a file is used only if it was written whole, by the same build, for the same `tokenizer.json`. Whatever
//! else is found counts as nothing, and no fault of the disk is an error: the tokenizer is compiled and checked again.

use std::fs;
use std::hash::BuildHasher;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use foldhash::fast::FixedState;

/// The first bytes of a file.
const MAGIC: &[u8; 16] = b"tokentape store\n";
/// No more files are kept than this, the latest ones: some 100 MB.
const MOST_FILES: usize = 16;
const EXTENSION: &str = "tokenizer";

/// A folder of compiled tokenizers, for any number of processes at once.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    build: String,
}

impl Store {
    /// A store in a folder, which is made when it is first written to. `build` names what reads and writes it: another
    /// one's files are as good as none.
    pub fn new(folder: impl Into<PathBuf>, build: impl Into<String>) -> Self {
        Self { folder: folder.into(), build: build.into() }
    }

    fn path(&self, sha256: &str) -> PathBuf {
        let build = FixedState::default().hash_one(&self.build) as u32;
        self.folder.join(format!("{sha256}-{build:08x}.{EXTENSION}"))
    }

    /// What stands before the content: all that must be the same for it to count, and a sum of it.
    fn head(&self, sha256: &str, content: &[u8]) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        head.extend((content.len() as u64).to_le_bytes());
        head.extend(FixedState::default().hash_one(content).to_le_bytes());
        head.extend(format!("{sha256} {}\n", self.build).into_bytes());
        head
    }

    /// What `read` makes of the content that was kept for a `tokenizer.json`, known by its SHA-256.
    pub(super) fn get<T>(&self, sha256: &str, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let whole = fs::read(self.path(sha256)).ok()?;
        let (head, content) = whole.split_at_checked(self.head(sha256, &[]).len())?;
        if *head != self.head(sha256, content) {
            return None;
        }
        read(content)
    }

    /// Keeps it, if the disk lets it: written beside and moved to its place, so that nobody reads the half of it.
    pub(super) fn put(&self, sha256: &str, content: &[u8]) {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let beside = self.folder.join(format!("{sha256}.{}.{count}.part", std::process::id()));
        let written = fs::create_dir_all(&self.folder).and_then(|()| {
            let mut file = fs::File::create_new(&beside)?;
            file.write_all(&self.head(sha256, content))?;
            file.write_all(content)?;
            drop(file);
            fs::rename(&beside, self.path(sha256))
        });
        if written.is_err() {
            _ = fs::remove_file(&beside);
        }
        self.prune();
    }

    /// Removes the oldest files beyond the number that is kept, and those that nobody finished.
    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let age = |path: &Path| {
            let written = fs::metadata(path).and_then(|about| about.modified()).ok()?;
            SystemTime::now().duration_since(written).ok()
        };
        let named = |extension: &str, path: &PathBuf| path.extension().is_some_and(|found| found == extension);
        let paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        let left = paths.iter().filter(|path| named("part", path));
        let left = left.filter(|path| age(path).is_some_and(|age| age.as_secs() > 3600));
        let mut kept: Vec<_> =
            paths.iter().filter(|path| named(EXTENSION, path)).map(|path| (age(path), path)).collect();
        kept.sort();
        for path in kept.iter().skip(MOST_FILES).map(|(_, path)| *path).chain(left) {
            _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use std::time::Duration;

    use super::*;

    fn store(name: &str) -> Store {
        let folder = std::env::temp_dir().join(format!("tokentape-store-{name}-{}", std::process::id()));
        _ = fs::remove_dir_all(&folder);
        Store::new(folder, "a build")
    }

    fn get(store: &Store, sha256: &str) -> Option<Vec<u8>> {
        store.get(sha256, |content| Some(content.to_vec()))
    }

    #[test]
    fn what_was_put_is_got_by_the_same_build_for_the_same_file() {
        let store = store("get");
        assert_eq!(get(&store, "abc"), None);
        store.put("abc", b"content");
        store.put("abc", b"another");
        assert_eq!(get(&store, "abc").unwrap(), b"another");
        assert_eq!(get(&store, "abd"), None);
        assert_eq!(get(&Store::new(&store.folder, "another build"), "abc"), None);
        assert_eq!(fs::read_dir(&store.folder).unwrap().count(), 1, "nothing is left beside");
    }

    #[test]
    fn a_file_that_is_cut_or_changed_anywhere_is_nothing() {
        let store = store("cut");
        store.put("abc", b"some content of the file");
        let whole = fs::read(store.path("abc")).unwrap();
        for place in 0..whole.len() {
            fs::write(store.path("abc"), &whole[..place]).unwrap();
            assert_eq!(get(&store, "abc"), None, "cut at {place}");
            let mut changed = whole.clone();
            changed[place] ^= 1;
            fs::write(store.path("abc"), changed).unwrap();
            assert_eq!(get(&store, "abc"), None, "changed at {place}");
        }
        fs::write(store.path("abc"), [whole.as_slice(), b"x"].concat()).unwrap();
        assert_eq!(get(&store, "abc"), None);
        fs::write(store.path("abc"), whole).unwrap();
        assert!(get(&store, "abc").is_some());
    }

    #[test]
    fn writers_at_the_same_time_leave_one_whole_file() {
        let store = store("race");
        let contents: Vec<Vec<u8>> = (0..8).map(|writer| vec![writer; 100_000]).collect();
        std::thread::scope(|scope| {
            for content in &contents {
                scope.spawn(|| {
                    for _ in 0..20 {
                        store.put("abc", content);
                        assert!(get(&store, "abc").is_some_and(|found| contents.contains(&found)));
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(&store.folder).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_is_no_error() {
        let store = store("file");
        fs::write(&store.folder, "no folder").unwrap();
        store.put("abc", b"content");
        assert_eq!(get(&store, "abc"), None);
    }

    #[test]
    fn old_files_go() {
        let store = store("old");
        for number in 0..MOST_FILES + 5 {
            store.put(&number.to_string(), b"content");
            // Coarse clocks give many files the same time.
            let written = SystemTime::UNIX_EPOCH + Duration::from_secs(number as u64);
            fs::File::options()
                .write(true)
                .open(store.path(&number.to_string()))
                .unwrap()
                .set_modified(written)
                .unwrap();
        }
        store.put("last", b"content");
        assert_eq!(fs::read_dir(&store.folder).unwrap().count(), MOST_FILES);
        assert!(get(&store, "0").is_none() && get(&store, "20").is_some() && get(&store, "last").is_some());
    }
}
