//! Errors name the container, the bucket or the credentials that are wrong, and the setting to change.
//!
//! The error "there is no table" is raised only if the caller may list files and the store has shown that there are
//! none. `tests/stores/test_bad_input.py` has these and further tests for S3.

use deltalog::{Environment, PendingWrite, Table};
use deltalog::{ErrorKind, PrimitiveType, SaveMode, Snapshot, StructField, StructType, WriteRequest};

use crate::places::Place;
use crate::rows::append;

const FUTURE: &str = "2099-01-01T00:00:00Z";
const PAST: &str = "2020-01-01T00:00:00Z";

/// Checks that opening the table `t`, which exists, and `other`, which does not, fails with an error of this kind that
/// contains these words.
fn refused(place: &Place, kind: ErrorKind, words: &[&str]) {
    for name in ["t", "other"] {
        let storage = place.open(name);
        let opened = Snapshot::open(&storage, None).map(drop).unwrap_err();
        let looked_for = Table::exists(&storage).unwrap_err();
        let schema = StructType::try_new(vec![StructField::new("id", PrimitiveType::Long, true)]).unwrap();
        let request = WriteRequest::new(schema, SaveMode::ErrorIfExists);
        let written = PendingWrite::begin(&storage, request, &Environment::system()).map(drop).unwrap_err();
        for error in [opened, looked_for, written] {
            let text = error.to_string();
            assert_eq!(error.kind(), kind, "{name}: {text}");
            for word in words {
                assert!(text.contains(word), "{name}: {text} does not say {word}");
            }
            assert!(!text.contains("sig=") && !text.contains("secret-"), "{text}");
        }
    }
}

fn with_table(place: Place) -> Place {
    append(&place.open("t"), 0..3);
    place
}

#[test]
fn a_container_that_does_not_exist() {
    for place in [Place::s3_server(), Place::versitygw(), Place::azurite(), Place::fake_gcs()] {
        let place = place.misspelled();
        refused(
            &place,
            ErrorKind::InvalidArgument,
            &["bucket or container does not exist", "check its name"],
        );
    }
}

#[test]
fn a_wrong_key() {
    let azurite = with_table(Place::azurite()).with(&[("azure_storage_account_key", "c2VjcmV0LXNlY3JldA==")]);
    refused(&azurite, ErrorKind::PermissionDenied, &["the signature", "'azure_storage_account_key'"]);
    let google = with_table(Place::fake_gcs()).with(&[("google_bearer_token", "secret-of-none")]);
    refused(
        &google,
        ErrorKind::PermissionDenied,
        &["does not accept the credentials", "'google_bearer_token'"],
    );
    let versitygw = with_table(Place::versitygw()).with(&[("aws_secret_access_key", "secret-of-none")]);
    refused(&versitygw, ErrorKind::PermissionDenied, &["the signature", "'aws_secret_access_key'"]);
}

/// A shared access signature has expired. Azurite returns the same error code as Azure, but not the details.
#[test]
fn a_signature_that_has_expired() {
    let place = with_table(Place::azurite());
    let place = place.signed("rl", PAST);
    refused(&place, ErrorKind::PermissionDenied, &["'azure_storage_sas_token'"]);
}

#[test]
fn no_permission_to_list() {
    let place = with_table(Place::azurite()).signed("rw", FUTURE);
    refused(&place, ErrorKind::PermissionDenied, &["refused access", "list objects"]);
    let place = with_table(Place::fake_gcs()).without_lists();
    refused(&place, ErrorKind::PermissionDenied, &["refused access", "list objects"]);
}

#[test]
fn a_permission_to_read_only() {
    let place = with_table(Place::azurite()).signed("rl", FUTURE);
    assert_eq!(Snapshot::open(&place.open("t"), None).unwrap().version(), 0);
    assert_eq!(Snapshot::open(&place.open("other"), None).unwrap_err().kind(), ErrorKind::NotATable);
    let error = place.open("t").put_if_absent("_delta_log/00000000000000000001.json", "{}");
    let error = match error {
        Err(error) | Ok(deltalog::engine::storage::PutOutcome::Unknown(error)) => error,
        Ok(outcome) => panic!("{outcome:?}"),
    };
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("write objects"), "{error}");
}

/// If nothing answers at the endpoint, the error names the endpoint and the setting for this kind of store.
#[test]
fn a_wrong_endpoint() {
    for (place, name, words) in [
        (Place::azurite(), "azure_storage_endpoint", "the account in the location"),
        (Place::fake_gcs(), "google_base_url", "'google_base_url'"),
        (Place::s3_server(), "aws_endpoint_url", "'aws_endpoint_url' and 'aws_region'"),
    ] {
        let place = place.with(&[("aws_endpoint", ""), (name, "http://127.0.0.1:1")]);
        refused(&place, ErrorKind::Unavailable, &["cannot be reached", "127.0.0.1:1", words]);
    }
}
