//! File names with characters that URLs and other protocols must escape.

use deltalog::engine::storage::PutOutcome;

use crate::contract::create;
use crate::places::Place;

on_every_store! { odd_names, odd_names_of_tables }

/// Characters that may occur in the names of partition directories.
const NAMES: [&str; 22] = [
    "a b", " a", "a=b", "a%20b", "a%2Fb", "100%", "%", "a+b", "a&b", "a?b", "a#b", "a;b", "a:b", "a@b",
    "a'b", "(a)", "a~b", "a,b", "a$b!*", "ä", "日本", "😀",
];

fn odd_names(place: &Place) {
    let storage = place.open("t");
    // HDFS refuses colons.
    let allowed = || NAMES.iter().filter(|name| !(place.is_hdfs() && name.contains(':')));
    let mut names: Vec<String> = allowed().map(|name| format!("p={name}/{name}.parquet")).collect();
    names.sort();
    let paths: Vec<String> = names.iter().map(|name| format!("d/{name}")).collect();
    for path in &paths {
        create(&storage, path, path.as_bytes());
        let again = storage.put_if_absent(path, b"again".to_vec()).unwrap();
        assert!(matches!(again, PutOutcome::AlreadyExists), "{path}: {again:?}");
        assert_eq!(storage.read(path).unwrap(), path.as_bytes(), "{path}");
        assert_eq!(storage.head(path).unwrap().unwrap().size, path.len() as u64, "{path}");
        assert_eq!(storage.open_file(path).unwrap().size(), path.len() as u64, "{path}");
    }
    let found: Vec<String> = storage.list_after("d", "").unwrap().into_iter().map(|file| file.name).collect();
    assert_eq!(found, names);
    for (at, name) in names.iter().enumerate() {
        let rest = storage.list_after("d", name).unwrap();
        assert!(rest.iter().map(|file| &file.name).eq(&names[at + 1..]), "after {name}: {rest:?}");
    }
    for name in allowed() {
        let found = storage.list_after(&format!("d/p={name}"), "").unwrap();
        let found: Vec<&str> = found.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(found, [format!("{name}.parquet")]);
    }
    for path in &paths {
        storage.delete(path).unwrap();
        assert!(storage.get(path).unwrap().is_none(), "{path}");
    }
}

/// The location of a table is a URL, in which special characters are escaped. Local directories are left out, because
/// a local path is used unchanged.
fn odd_names_of_tables(place: &Place) {
    if place.is_local() {
        return;
    }
    for (spelled, name) in [("a%20b", "a b"), ("100%25", "100%"), ("%C3%A4", "ä"), ("p=1", "p=1")] {
        create(&place.open(spelled), "f", b"x");
        let all = place.open("").list_after("", "").unwrap();
        assert!(all.iter().any(|file| file.name == format!("{name}/f")), "{spelled}: {all:?}");
    }
}
