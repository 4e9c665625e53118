//! Credentials that come from a provider instead of options.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use deltalog::{Credentials, Error, ErrorKind, Storage};

use crate::places::Place;

/// Opens `place` with a provider instead of the options that `secrets` names, and writes and reads a file. `make`
/// creates the provider's credentials from the values of these options.
fn check(place: &Place, secrets: &[&str], make: impl Fn(&[String]) -> Credentials + Send + Sync + 'static) {
    let of = |name: &&str| {
        let found = place.options.iter().find(|(known, _)| known == name);
        found.map_or_else(String::new, |(_, value)| value.clone())
    };
    let values: Vec<String> = secrets.iter().map(of).collect();
    let rest = || {
        let rest = place.options.iter().filter(|(name, _)| !secrets.contains(&name.as_str()));
        rest.map(|(name, value)| (name.as_str(), value.as_str()))
    };
    let root = format!("{}/t", place.root);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let provider = Arc::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(make(&values).expiring_at(SystemTime::now() + Duration::from_secs(3600)))
    });
    let storage = Storage::open_with_credentials(&root, rest(), provider.clone()).unwrap();
    storage.put_if_absent("_delta_log/a", "text").unwrap();
    let again = Storage::open_with_credentials(&root, rest(), provider).unwrap();
    assert_eq!(again.get("_delta_log/a").unwrap().unwrap(), "text");
    assert_eq!(asked.load(Ordering::SeqCst), 1);

    let failing = || Err(Error::new(ErrorKind::PermissionDenied, "the vault is sealed"));
    let storage = Storage::open_with_credentials(&root, rest(), Arc::new(failing)).unwrap();
    let error = storage.get("_delta_log/a").unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::PermissionDenied, Some("_delta_log/a")));
    assert!(error.to_string().starts_with("the vault is sealed"), "{error}");
    // The put was not sent, so its outcome is known.
    assert!(storage.put_if_absent("_delta_log/b", "text").is_err());

    let other = || Ok(Credentials::shared_access_signature("hidden"));
    let storage = Storage::open_with_credentials(&root, rest(), Arc::new(other)).unwrap();
    let text = storage.get("_delta_log/a").unwrap_err().to_string();
    assert!(text.contains("credentials of the provider") && !text.contains("hidden"), "{text}");
}

#[test]
fn an_access_key_of_s3() {
    let names = ["aws_access_key_id", "aws_secret_access_key"];
    for place in [Place::s3_server(), Place::versitygw()] {
        check(&place, &names, |values| Credentials::access_key(&values[0], &values[1], None::<String>));
    }
}

#[test]
fn the_key_of_an_account_of_azure() {
    check(&Place::azurite(), &["azure_storage_account_key"], |values| Credentials::account_key(&values[0]));
}

#[test]
fn a_token_of_google() {
    check(&Place::fake_gcs(), &["google_bearer_token"], |values| Credentials::bearer_token(&values[0]));
}
