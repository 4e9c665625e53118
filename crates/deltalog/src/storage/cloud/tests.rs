use crate::error::ErrorKind;
use crate::storage::Storage;

const KEYS: [(&str, &str); 2] = [("aws_access_key_id", "key"), ("aws_secret_access_key", "secret")];
const AZURE: [(&str, &str); 1] = [("azure_storage_account_key", "c2VjcmV0")];
const GOOGLE: [(&str, &str); 1] = [("google_skip_signature", "true")];

fn name(uri: &str, options: &[(&str, &str)]) -> String {
    Storage::open(uri, options.iter().copied()).unwrap().url()
}

fn refusal(uri: &str, options: &[(&str, &str)]) -> String {
    let error = Storage::open(uri, options.iter().copied()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    error.to_string()
}

/// Issue threads of users: one table by two names gets two sets of keys, and files outside of "the table".
#[test]
fn all_spellings_of_a_place_are_one() {
    for scheme in ["s3", "s3a", "s3n", "S3A"] {
        assert_eq!(name(&format!("{scheme}://bucket/a/t/"), &KEYS), "s3://bucket/a/t");
    }
    for scheme in ["gs", "gcs"] {
        assert_eq!(name(&format!("{scheme}://bucket/t"), &GOOGLE), "gs://bucket/t");
    }
    let lake = "abfss://c@account.dfs.core.windows.net/t";
    for uri in [
        "abfss://c@account.dfs.core.windows.net/t",
        "abfs://c@account.dfs.core.windows.net/t",
        "wasbs://c@account.blob.core.windows.net/t",
        "wasb://c@account.blob.core.windows.net/t",
    ] {
        assert_eq!(name(uri, &AZURE), lake);
    }
    let with_account = [("azure_storage_account_name", "account"), AZURE[0]];
    assert_eq!(name("az://c/t", &with_account), lake);
    assert_eq!(name("abfss://c/t", &with_account), lake);
    assert_eq!(
        name("az://c/t", &[("azure_storage_use_emulator", "true")]),
        "abfss://c@devstoreaccount1.dfs.core.windows.net/t"
    );
    assert_eq!(
        name("abfss://c@account.dfs.core.usgovcloudapi.net/t", &AZURE),
        "abfss://c@account.dfs.core.usgovcloudapi.net/t"
    );
}

#[test]
fn what_a_location_must_not_have_is_refused_without_being_shown() {
    for uri in
        ["s3://key:secret@bucket/t", "s3://secret@bucket/t", "s3://bucket/t?token=secret", "gs://b/t#secret"]
    {
        let text = refusal(uri, &KEYS);
        assert!(!text.contains("secret") && text.contains("storage options"), "{text}");
    }
    assert!(refusal("s3:///t", &KEYS).contains("names no bucket"));
    assert!(refusal("az://c/t", &AZURE).contains("azure_storage_account_name"));
    let other = [("azure_storage_account_name", "other"), AZURE[0]];
    assert!(refusal("abfss://c@account.dfs.core.windows.net/t", &other).contains("name another one"));
}

#[test]
fn wrong_options_are_refused_when_a_location_is_opened() {
    let with = |option: (&'static str, &'static str)| refusal("s3://bucket/t", &[KEYS[0], KEYS[1], option]);
    assert!(with(("aws_regoin", "x")).contains("spell it 'aws_region'"));
    assert!(with(("aws_bucket", "x")).contains("part of the location"));
    assert!(with(("aws_conditional_put", "disabled")).contains("commits need conditional puts"));
    assert!(with(("aws_endpoint_url", "http://localhost:1")).contains("allow_http"));
    assert!(with(("allow_unsafe_rename", "true")).contains("leave it out"));
    assert!(with(("AWS_S3_LOCKING_PROVIDER", "zookeeper")).contains("no log store 'zookeeper'"));
    name("s3://bucket/t", &[KEYS[0], KEYS[1], ("AWS_S3_LOCKING_PROVIDER", "dynamodb")]);
    let provider = ("AWS_S3_LOCKING_PROVIDER", "dynamodb");
    assert!(refusal("gs://bucket/t", &[GOOGLE[0], provider]).contains("commits need no lock"));
    assert!(with(("timeout", "soon")).contains("do not describe a store"));
    // Half of a pair.
    assert!(refusal("s3://bucket/t", &KEYS[..1]).contains("do not describe a store"));
    assert!(refusal("gs://bucket/t", &[("google_bucket", "x")]).contains("part of the location"));
}

/// Each would let the client panic with the first request.
#[test]
fn an_endpoint_that_is_no_url_is_refused() {
    for endpoint in ["", "localhost:9000", "127.0.0.1:9000", "ftp://host", "https://", "/path"] {
        let text = refusal("s3://bucket/t", &[KEYS[0], KEYS[1], ("aws_endpoint_url", endpoint)]);
        assert!(text.contains("is not a URL"), "{endpoint}: {text}");
        let text = refusal("gs://bucket/t", &[GOOGLE[0], ("google_base_url", endpoint)]);
        assert!(text.contains("is not a URL"), "{endpoint}: {text}");
        let uri = "abfss://c@account.dfs.core.windows.net/t";
        let text = refusal(uri, &[AZURE[0], ("azure_storage_endpoint", endpoint)]);
        assert!(text.contains("is not a URL"), "{endpoint}: {text}");
    }
    for allowed in ["true", "TRUE", "1", "yes", "on"] {
        name("s3://b/t", &[KEYS[0], KEYS[1], ("aws_endpoint", "HTTP://host"), ("allow_http", allowed)]);
    }
}

/// Mostly they were read from a file together with the line break at its end.
#[test]
fn credentials_with_a_line_break_are_refused_without_being_shown() {
    let lake = "abfss://c@account.dfs.core.windows.net/t";
    for (uri, option) in [
        ("s3://bucket/t", "aws_access_key_id"),
        ("s3://bucket/t", "aws_secret_access_key"),
        ("s3://bucket/t", "aws_session_token"),
        ("gs://bucket/t", "google_bearer_token"),
        (lake, "azure_storage_sas_key"),
    ] {
        let text = refusal(uri, &[(option, "hidden=1\n")]);
        assert!(text.contains(&format!("'{option}'")) && text.contains("line break"), "{option}: {text}");
        assert!(!text.contains("hidden"), "{text}");
    }
    assert!(refusal(lake, &[("azure_storage_token", "hidden…")]).contains("printable"));
}

/// A private key whose line breaks were lost, as variables of the environment often lose them.
#[test]
fn a_key_that_cannot_be_read_is_not_shown() {
    let key = r#"{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----hidden",
        "private_key_id":"x","client_email":"a@b"}"#;
    let text = refusal("gs://bucket/t", &[("google_service_account_key", key)]);
    let bytes = "hidden".bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
    assert!(!text.contains("hidden") && !text.contains(&bytes), "{text}");
}

/// "General purpose bucket naming rules" of Amazon S3; other servers may have others.
#[test]
fn a_bucket_that_cannot_be_is_refused_at_amazon() {
    let long = "x".repeat(64);
    for bucket in ["My-bucket", "my_bucket", "ab", "-bucket", "bucket.", &long] {
        let uri = format!("s3://{bucket}/t");
        assert!(refusal(&uri, &KEYS).contains("3 to 63 lower-case letters"), "{bucket}");
        name(&uri, &[KEYS[0], KEYS[1], ("aws_endpoint_url", "https://host")]);
    }
    name("s3://my.bucket-1/t", &KEYS);
}

#[test]
fn an_empty_segment_is_not_left_out() {
    for uri in ["s3://bucket//t", "s3://bucket/a//t"] {
        assert!(refusal(uri, &KEYS).contains("not a valid path"), "{uri}");
    }
    assert_eq!(name("s3://bucket/t//", &KEYS), "s3://bucket/t");
}

#[test]
fn an_unknown_scheme_is_refused_by_name() {
    let error = Storage::open("ftp://host/t", []).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("'ftp'"), "{error}");
}

#[test]
fn debug_shows_no_secret() {
    let storage = Storage::open("s3://bucket/t", KEYS).unwrap();
    assert_eq!(format!("{storage:?}"), "Storage(\"s3://bucket/t\")");
}
