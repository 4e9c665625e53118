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

/// If one table had two names, some of its files would seem to be outside the table. Users of other software have
/// reported this.
#[test]
fn all_spellings_of_a_location_have_the_same_name() {
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
fn credentials_in_locations_are_refused_without_being_shown() {
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
    // This is only half of a pair of keys.
    assert!(refusal("s3://bucket/t", &KEYS[..1]).contains("do not describe a store"));
    assert!(refusal("gs://bucket/t", &[("google_bucket", "x")]).contains("part of the location"));
}

/// Each of these endpoints would make the client panic at the first request.
#[test]
fn an_endpoint_that_is_not_a_url_is_refused() {
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

/// Such values were usually read from a file, including the line break at its end.
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

/// A private key without its line breaks, which are often lost in environment variables.
#[test]
fn a_private_key_that_cannot_be_parsed_is_not_shown() {
    let key = r#"{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----hidden",
        "private_key_id":"x","client_email":"a@b"}"#;
    let text = refusal("gs://bucket/t", &[("google_service_account_key", key)]);
    let bytes = "hidden".bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
    assert!(!text.contains("hidden") && !text.contains(&bytes), "{text}");
}

/// "General purpose bucket naming rules" of Amazon S3. Other servers may have other rules.
#[test]
fn amazon_refuses_invalid_bucket_names() {
    let long = "x".repeat(64);
    for bucket in ["My-bucket", "my_bucket", "ab", "-bucket", "bucket.", &long] {
        let uri = format!("s3://{bucket}/t");
        assert!(refusal(&uri, &KEYS).contains("3 to 63 lower-case letters"), "{bucket}");
        name(&uri, &[KEYS[0], KEYS[1], ("aws_endpoint_url", "https://host")]);
    }
    name("s3://my.bucket-1/t", &KEYS);
}

#[test]
fn a_path_with_an_empty_segment_is_refused() {
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

/// An invalid value of an option is an error. It never makes a client panic, which would end a thread of the caller.
#[test]
fn unusual_values_of_options_are_errors() {
    const NAMES: [(&str, &[&str]); 4] = [
        (
            "s3://bucket/t",
            &[
                "aws_access_key_id",
                "aws_checksum_algorithm",
                "aws_container_authorization_token_file",
                "aws_container_credentials_full_uri",
                "aws_container_credentials_relative_uri",
                "aws_endpoint_url_sts",
                "aws_imdsv1_fallback",
                "aws_metadata_endpoint",
                "aws_region",
                "aws_request_payer",
                "aws_role_arn",
                "aws_role_session_name",
                "aws_s3_express",
                "aws_secret_access_key",
                "aws_server_side_encryption",
                "aws_session_token",
                "aws_sse_bucket_key_enabled",
                "aws_sse_customer_key_base64",
                "aws_sse_kms_key_id",
                "aws_virtual_hosted_style_request",
                "aws_web_identity_token_file",
                "aws_endpoint_url",
                "aws_profile",
            ],
        ),
        (
            "gs://bucket/t",
            &[
                "google_application_credentials",
                "google_base_url",
                "google_bearer_token",
                "google_service_account",
                "google_service_account_key",
                "google_skip_signature",
            ],
        ),
        (
            "abfss://c@account.dfs.core.windows.net/t",
            &[
                "azure_storage_account_key",
                "azure_storage_authority_host",
                "azure_storage_client_id",
                "azure_storage_client_secret",
                "azure_storage_endpoint",
                "azure_storage_encryption_key",
                "azure_storage_sas_token",
                "azure_storage_tenant_id",
                "azure_storage_token",
                "azure_msi_endpoint",
                "azure_object_id",
                "azure_msi_resource_id",
                "azure_federated_token_file",
                "azure_use_azure_cli",
                "azure_fabric_workload_host",
                "azure_fabric_token_service_url",
                "azure_fabric_cluster_identifier",
                "azure_fabric_session_token",
                "azure_credential_type",
            ],
        ),
        (
            "s3://bucket/t",
            &[
                "connect_timeout",
                "default_content_type",
                "http2_keep_alive_interval",
                "http2_max_frame_size",
                "pool_idle_timeout",
                "pool_max_idle_per_host",
                "proxy_ca_certificate",
                "proxy_excludes",
                "proxy_url",
                "read_timeout",
                "timeout",
                "user_agent",
                "http2_only",
                "http1_only",
            ],
        ),
    ];
    // Each value fails another check: of headers, of URLs or of numbers.
    const VALUES: [&str; 2] = ["a\nb", "://["];
    let mut panicked = Vec::new();
    for (uri, names) in NAMES {
        let needed = match uri {
            "gs://bucket/t" => {
                [("google_base_url", "http://127.0.0.1:1"), ("google_bearer_token", "token")].to_vec()
            }
            "s3://bucket/t" => vec![KEYS[0], KEYS[1], ("aws_endpoint_url", "http://127.0.0.1:1")],
            _ => vec![("azure_storage_endpoint", "http://127.0.0.1:1"), AZURE[0]],
        };
        for (name, value) in names.iter().flat_map(|name| VALUES.map(|value| (*name, value))) {
            let mut options = needed.clone();
            options.extend([("allow_http", "true"), ("max_retries", "0"), ("connect_timeout", "1s")]);
            options.retain(|(known, _)| *known != name);
            options.push((name, value));
            let read = || Storage::open(uri, options.iter().copied())?.get("f").map(drop);
            if !matches!(std::panic::catch_unwind(read), Ok(Err(_))) {
                panicked.push((name, value));
            }
        }
    }
    assert!(panicked.is_empty(), "{panicked:#?}");
}
