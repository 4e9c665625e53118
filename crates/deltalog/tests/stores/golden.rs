//! Reads tables of other writers from a store, and compares the result with reading them from disk.
//!
//! `DELTALOG_GOLDEN` names a folder other than `../shared/golden`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use deltalog::{ErrorKind, Snapshot, Storage, TableScan};

use crate::contract::create;
use crate::places::Place;

// One server for each protocol is enough.
on_every_store! { versitygw, [golden_tables] }
on_every_store! { azurite, [golden_tables] }
on_every_store! { fake_gcs, [golden_tables] }

/// The result of reading a table: its version and its rows as text, or the kind of the error.
type Content = Result<(u64, Vec<String>), ErrorKind>;

/// Two tables with 1,000,000 and 100,000 rows. They are left out, because other tables have the same kinds of files.
const LEFT_OUT: [&str; 2] = ["golden-parquet-decimal-dictionaries", "golden-parquet-decimal-type"];

/// The names of the tables, with the result of reading each from disk.
static TABLES: LazyLock<Vec<(String, PathBuf, Content)>> = LazyLock::new(|| {
    let root = std::env::var_os("DELTALOG_GOLDEN").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden"),
        PathBuf::from,
    );
    let entries = fs::read_dir(&root).into_iter().flatten().flatten();
    let mut tables: Vec<_> = entries
        .filter(|entry| entry.path().join("table").is_dir())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path().join("table")))
        .filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()))
        .collect();
    tables.sort();
    let is_wanted = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(
        !is_wanted || !tables.is_empty(),
        "no tables in {}; DELTALOG_GOLDEN names another folder",
        root.display()
    );
    let read = |(name, table): (String, PathBuf)| {
        // A table in an object store cannot refer to files on a local disk, so reading its copy must fail.
        let content =
            if names_local_files(&table) { Err(ErrorKind::Unsupported) } else { content_of(&table) };
        (name, table, content)
    };
    tables.into_iter().map(read).collect()
});

fn names_local_files(table: &Path) -> bool {
    let commits = fs::read_dir(table.join("_delta_log")).into_iter().flatten().flatten();
    let mut texts =
        commits.map(|entry| entry.path()).filter(|path| path.is_file()).map(|path| fs::read(path).unwrap());
    texts.any(|text| {
        let text = String::from_utf8_lossy(&text);
        text.contains(r#""path":"file:/"#) || text.contains(r#""path":"/"#)
    })
}

fn content_of(table: &Path) -> Content {
    content(&Storage::open(table.to_str().unwrap(), []).unwrap())
}

fn golden_tables(place: &Place) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for (name, table, on_disk) in TABLES.iter().skip(thread).step_by(4) {
                    let storage = place.open(name);
                    copy(table, table, &storage);
                    assert_eq!(content(&storage), *on_disk, "{name}");
                }
            });
        }
    });
}

/// Copies all files except Hadoop's checksums, which only local directories have.
fn copy(root: &Path, directory: &Path, to: &Storage) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            copy(root, &path, to);
        } else if !path.file_name().unwrap().to_str().unwrap().starts_with('.') {
            create(to, path.strip_prefix(root).unwrap().to_str().unwrap(), &fs::read(&path).unwrap());
        }
    }
}

fn content(storage: &Storage) -> Content {
    let read = || {
        let snapshot = Snapshot::open(storage, None)?;
        let mut rows = Vec::new();
        for batch in TableScan::new(&snapshot).read()? {
            rows.extend(texts(&batch?));
        }
        rows.sort_unstable();
        Ok((snapshot.version(), rows))
    };
    read().map_err(|error: deltalog::Error| error.kind())
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("null");
    let columns = batch.columns().iter();
    let columns: Vec<_> =
        columns.map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap()).collect();
    let text = |row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(text).collect()
}
