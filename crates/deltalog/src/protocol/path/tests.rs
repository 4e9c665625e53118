//! Tests of how paths are decoded, refused and encoded.

use proptest::prelude::*;

use super::*;
use crate::ErrorKind;

fn resolver(table: &str) -> PathResolver {
    PathResolver::new(&Url::parse(table).unwrap()).unwrap()
}

fn relative(path: &str) -> LogPath {
    LogPath::Relative(path.to_owned())
}

#[test]
fn relative_paths_are_decoded_once() {
    let resolver = resolver("file:///data/t");
    for (raw, decoded) in [
        ("part-0.parquet", "part-0.parquet"),
        ("a%20b/part-0.parquet", "a b/part-0.parquet"),
        // The directory name is escaped by Hive, so it contains a '%', which is escaped again in the URI.
        ("ts=2020-01-01%2000%253A00/f", "ts=2020-01-01 00%3A00/f"),
        ("./a//b", "a/b"),
        ("x=1?y#z/f", "x=1?y#z/f"),
        ("t=12:30/f", "t=12:30/f"),
        ("%C3%A9/\u{e9}", "\u{e9}/\u{e9}"),
    ] {
        assert_eq!(resolver.resolve(raw).unwrap(), relative(decoded), "{raw}");
    }
}

#[test]
fn absolute_paths_below_the_table_are_relative() {
    for raw in [
        "/data/my%20t/a/b",
        "file:/data/my%20t/a/b",
        "file:///data/my%20t/a/b",
        "FILE://localhost/data/my t/a/b",
    ] {
        assert_eq!(resolver("file:///data/my%20t/").resolve(raw).unwrap(), relative("a/b"), "{raw}");
    }
    for raw in ["s3://bucket/t/a", "s3a://bucket/t/a", "s3n://bucket/t/a", "/t/a"] {
        assert_eq!(resolver("s3://bucket/t").resolve(raw).unwrap(), relative("a"), "{raw}");
    }
    assert_eq!(
        resolver("abfss://c@acc.dfs.core.windows.net/t")
            .resolve("abfs://c@acc.dfs.core.windows.net/t/a")
            .unwrap(),
        relative("a")
    );
}

#[test]
fn hostile_paths_are_refused() {
    let resolver = resolver("s3://bucket/t");
    for raw in [
        "",
        "/",
        ".",
        "..",
        "../x",
        "a/../../x",
        "%2e%2E/x",
        "a%2F..%2Fx",
        "a\0",
        "a%00",
        "%",
        "%4",
        "%zz",
        "%ff",
        "s3:",
        "s3:x",
        "s3://bucket",
    ] {
        assert_eq!(resolver.resolve(raw).unwrap_err().kind(), ErrorKind::CorruptLog, "{raw:?}");
    }
    for raw in [
        "/etc/passwd",
        "/tt/a",
        "file:///t/a",
        "s3://other/t/a",
        "//other/t/a",
        "s3://user@bucket/t/a",
        "s3://bucket:9000/t/a",
        "https://bucket/t/a",
        "c:/t/a",
    ] {
        assert_eq!(resolver.resolve(raw).unwrap_err().kind(), ErrorKind::Unsupported, "{raw:?}");
    }
}

#[test]
fn allowed_roots_allow_only_paths_below_them() {
    let resolver = resolver("s3://bucket/clone").allow(&Url::parse("s3://other/base").unwrap()).unwrap();
    let LogPath::Absolute(path) = resolver.resolve("s3a://other/base/a%20b").unwrap() else { panic!() };
    assert_eq!((path.scheme(), path.authority(), path.path()), ("s3", "other", "/base/a b"));
    assert_eq!(path.to_uri(), "s3://other/base/a%20b");
    for raw in ["s3://other/base", "s3://other/base2/a", "s3://bucket/base/a", "/base/a"] {
        assert!(resolver.resolve(raw).is_err(), "{raw}");
    }
}

#[test]
fn a_decoded_path_is_not_decoded_again() {
    let resolver = resolver("file:///clone").allow(&Url::parse("file:///base").unwrap()).unwrap();
    for raw in ["file:///base/a%20b", "/base/p=50%2525/a:b%23?c", "file:/base/%C3%A9/x", "/base/a+b"] {
        assert_eq!(
            resolver.resolve_decoded(&decode(raw).unwrap()).unwrap(),
            resolver.resolve(raw).unwrap(),
            "{raw}"
        );
    }
    assert!(
        resolver.resolve_decoded("/base/../etc/passwd").is_err()
            && resolver.resolve_decoded("file:///based/a").is_err()
    );
}

#[test]
fn different_spellings_of_a_file_are_equal() {
    let resolver = resolver("file:///somewhere/else");
    let key = resolver.parse("/some/unqualified/path").unwrap();
    assert_eq!(resolver.parse("file:/some/unqualified/path").unwrap(), key);
    assert_eq!(resolver.parse("file:///some/unqualified/path").unwrap(), key);
    assert!(resolver.resolve("/some/unqualified/path").is_err());
}

#[test]
fn errors_show_no_credentials() {
    let resolver = resolver("s3://bucket/t");
    for raw in [
        "https://user:canary@host/t/a",
        "https://host/a?sig=canary",
        "https://user:canary@host/../a",
        "//u:canary@h/../x",
    ] {
        let error = resolver.resolve(raw).unwrap_err().to_string();
        assert!(!error.contains("canary"), "{error}");
    }
}

#[test]
fn sidecar_paths_are_bare_names() {
    assert_eq!(PathResolver::sidecar_name("016ae953%20a.parquet").unwrap(), "016ae953 a.parquet");
    for raw in ["", ".", "..", "a/b", "a%2Fb", "/a", "file:///a", "a%00"] {
        assert_eq!(PathResolver::sidecar_name(raw).unwrap_err().kind(), ErrorKind::CorruptLog, "{raw}");
    }
}

#[test]
fn paths_are_encoded_as_ascii_in_the_same_way_as_in_java() {
    // The expected values are results of new java.net.URI(null, null, path, null, null).toASCIIString().
    assert_eq!(encode("a b/%41?#[]{}|\\^`\"<>"), "a%20b/%2541%3F%23%5B%5D%7B%7D%7C%5C%5E%60%22%3C%3E");
    assert_eq!(encode("x/:@&=+$,;_-!.~'()*é日"), "x/:@&=+$,;_-!.~'()*%C3%A9%E6%97%A5");
    assert_eq!(encode("x/\u{a0}\u{7f}\u{2028}"), "x/%C2%A0%7F%E2%80%A8");
    assert_eq!(encode("a:b/c:d"), "a%3Ab/c:d");
}

proptest! {
    #[test]
    fn decode_undoes_encode(path in any::<String>()) {
        let encoded = encode(&path);
        prop_assert_eq!(decode(&encoded).unwrap(), path);
    }

    #[test]
    fn written_paths_resolve_to_themselves(segments in prop::collection::vec("[^/\0]{1,8}", 1..4)) {
        prop_assume!(!segments.iter().any(|segment| segment == "." || segment == ".."));
        let path = segments.join("/");
        for table in ["file:///t", "s3://bucket/t%20u"] {
            prop_assert_eq!(resolver(table).resolve(&encode(&path)).unwrap(), relative(&path));
        }
    }

    #[test]
    fn nothing_resolves_outside_the_table(raw in "[a-z./%2Ee:]{0,24}|.*") {
        if let Ok(path) = resolver("file:///t").resolve(&raw) {
            let LogPath::Relative(path) = path else { panic!("{raw}") };
            let mut segments = path.split('/');
            prop_assert!(segments.all(|segment| !matches!(segment, "" | "." | "..")), "{}", path);
        }
    }
}

#[test]
fn an_empty_segment_is_part_of_a_key() {
    let resolver = resolver("s3://bucket/t");
    for raw in ["s3://bucket//t/a", "s3a://bucket/t//a", "a//b", "/t//a", "a/%2Fb"] {
        let error = resolver.resolve(raw).unwrap_err();
        assert!(error.to_string().contains("empty segment"), "{raw}: {error}");
    }
    assert!(PathResolver::new(&Url::parse("s3://bucket//t").unwrap()).is_err());
    assert!(PathResolver::new(&Url::parse("hdfs://host//t").unwrap()).is_ok());
}
