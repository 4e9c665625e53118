//! Azure Blob Storage and Data Lake Storage: `abfss://container@account.dfs.core.windows.net/path`, or
//! `az://container/path` with the account in the options or the environment.
//!
//! Accounts with a hierarchical namespace (Data Lake Storage Gen2) are accessed through the same interface, the blob
//! interface. The emulator does not have such a namespace. The following is what Azure documents and what the client
//! does:
//!
//! - Listings contain directories as well, with the resource type `directory`. The client leaves them out, and reading
//!   a directory reports a missing file.
//! - To list the log from a given version on, `startFrom` is used. In a listing without nested directories, `startFrom`
//!   may be a file one level below the prefix, which is where the files of the log are. Servers that ignore it return
//!   more files, which `Storage` leaves out.
//! - A file is created by a put with `If-None-Match: *`. No file is renamed, and no directory is created or deleted.

use object_store::ClientConfigKey::AllowHttp;
use object_store::azure::{
    AzureAccessKey, AzureConfigKey as Key, AzureCredential, MicrosoftAzure, MicrosoftAzureBuilder, split_sas,
};
use url::Url;

use super::options::Options;
use super::provider::{printable, wrong_kind};
use super::{
    Builder as _, Place, Provider, Traits, bucket, builder, canonical, check_endpoint, check_provider,
    check_texts, complete, is_true, named_twice, place, recipe,
};
use crate::error::{Error, Result};
use crate::storage::answers::{SILENCE_OF_HTTP, Settings};
use crate::storage::credentials::Secret;

/// The names of the options for Azure. If a user misspells one, the most similar name is suggested.
const NAMES: [&str; 25] = [
    // The container, if the location does not name it.
    "azure_container_name",
    // The kind of credentials to use, if several are configured.
    "azure_credential_type",
    // Writes no tags to objects. Default: false.
    "azure_disable_tagging",
    // The cluster in Fabric.
    "azure_fabric_cluster_identifier",
    // The token of the session in Fabric.
    "azure_fabric_session_token",
    // The URL of the token service in Fabric.
    "azure_fabric_token_service_url",
    // The host of the workload in Fabric.
    "azure_fabric_workload_host",
    // The file with the token of a workload identity.
    "azure_federated_token_file",
    // The URL that issues tokens for a managed identity.
    "azure_msi_endpoint",
    // The resource id of the managed identity.
    "azure_msi_resource_id",
    // The object id of the managed identity.
    "azure_object_id",
    // Sends requests without credentials, for public containers. Default: false.
    "azure_skip_signature",
    // The access key of the account.
    "azure_storage_account_key",
    // The account, if the location does not name it.
    "azure_storage_account_name",
    // The URL that issues tokens for a service principal.
    "azure_storage_authority_host",
    // The id of a service principal, or of a managed identity.
    "azure_storage_client_id",
    // The secret of a service principal.
    "azure_storage_client_secret",
    // A key of your own, in Base64, with which the store encrypts objects.
    "azure_storage_encryption_key",
    // The URL of the store, if it is not in Microsoft's public cloud.
    "azure_storage_endpoint",
    // A shared access signature.
    "azure_storage_sas_token",
    // The tenant of a service principal.
    "azure_storage_tenant_id",
    // An access token.
    "azure_storage_token",
    // Connects to the emulator Azurite. Default: false.
    "azure_storage_use_emulator",
    // Uses the login of the Azure command line interface. Default: false.
    "azure_use_azure_cli",
    // Uses Fabric's endpoint. Default: false.
    "azure_use_fabric_endpoint",
];

/// The name of the emulator's account.
const EMULATOR: &str = "devstoreaccount1";
/// The common suffix of the host names of public accounts.
const PUBLIC: &str = "dfs.core.windows.net";

/// The names of options for credentials. They cannot be combined with a credential provider.
const SECRETS: [&str; 8] = [
    "azure_credential_type",
    "azure_federated_token_file",
    "azure_skip_signature",
    "azure_storage_account_key",
    "azure_storage_client_secret",
    "azure_storage_sas_key",
    "azure_storage_token",
    "azure_use_azure_cli",
];

/// The names of the settings, as they are mentioned in hints.
const SETTINGS: Settings = Settings {
    credentials: "'azure_storage_account_key', 'azure_storage_sas_token' or 'azure_storage_token'",
    secret: "'azure_storage_account_key' or 'azure_storage_sas_token'",
    host: "the account in the location, and 'azure_storage_endpoint'",
    silence: SILENCE_OF_HTTP,
};

builder!(MicrosoftAzureBuilder, MicrosoftAzure, credential, SETTINGS);

fn credential(secret: Secret) -> Result<AzureCredential> {
    // The store's errors quote values that they cannot parse, so secrets are checked here first.
    Ok(match secret {
        Secret::AccountKey(key) => AzureCredential::AccessKey(
            AzureAccessKey::try_new(&key)
                .map_err(|_| Error::invalid_argument("the key of an account is not in base64"))?,
        ),
        Secret::SharedAccessSignature(query) => AzureCredential::SASToken(
            split_sas(&printable(query)?)
                .map_err(|_| Error::invalid_argument("the shared access signature is not a query string"))?,
        ),
        Secret::BearerToken(token) => AzureCredential::BearerToken(printable(token)?),
        Secret::AccessKey { .. } => {
            return Err(wrong_kind("a token, a shared access signature or the key of an account"));
        }
    })
}

pub(super) fn open(url: &Url, mut options: Options, provider: Provider) -> Result<Place> {
    let retries = options.retries()?;
    options.set_time_limits("azure_");
    let mut builder = MicrosoftAzureBuilder::from_env();
    let keys = options.keys("Azure", &NAMES)?;
    check_provider(&provider, &keys, &SECRETS)?;
    for (key, value) in keys {
        if let Key::ContainerName = key {
            return Err(named_twice("container"));
        }
        builder = builder.with_config(key, value);
    }
    let is_emulator = builder.get_config_value(&Key::UseEmulator).is_some_and(|value| is_true(&value));
    if is_emulator && provider.is_some() {
        return Err(Error::invalid_argument("the emulator of Azure does not accept a credential provider")
            .with_hint("set the option 'azure_storage_endpoint' instead of 'azure_storage_use_emulator'"));
    }
    let url = canonical(url)?;
    let url = match url.username() {
        "" => with_account(&url, &builder, is_emulator)?,
        _ => url,
    };
    let (account, suffix) = bucket(&url)?.split_once('.').unwrap_or((bucket(&url)?, PUBLIC));
    let named = builder.get_config_value(&Key::AccountName);
    if named.as_deref().is_some_and(|named| named != account) {
        return Err(Error::invalid_argument(format!(
            "the location is in the account '{account}', but the options or the environment name another one"
        ))
        .with_hint("leave out the option 'azure_storage_account_name'"));
    }
    let mut builder = builder.with_account(account).with_container_name(url.username());
    let unproven =
        builder.get_config_value(&Key::Endpoint).or(is_emulator.then(|| "the emulator".to_owned()));
    let traits = Traits { reads_ends: false, unproven, complete: complete() };
    // Accounts in other clouds and in Fabric have other host names.
    if suffix != PUBLIC && !is_emulator && builder.get_config_value(&Key::Endpoint).is_none() {
        builder = builder.with_endpoint(format!("https://{account}.{}", suffix.replacen("dfs.", "blob.", 1)));
    }
    let endpoint = builder.get_config_value(&Key::Endpoint);
    if !is_emulator {
        check_endpoint(endpoint.as_deref(), builder.get_config_value(&Key::Client(AllowHttp)).as_deref())?;
    }
    check_texts(&[Key::Token, Key::SasKey], |key| builder.get_config_value(key))?;
    let recipe =
        recipe(&url, builder, retries, traits, move |builder, _| Ok(builder.with_provider(&provider)));
    Ok(Place { url, recipe, log_store_scheme: None })
}

/// Returns `az://container/path` with the account as part of the location.
fn with_account(url: &Url, builder: &MicrosoftAzureBuilder, is_emulator: bool) -> Result<Url> {
    let account = builder.get_config_value(&Key::AccountName);
    let account = account.or(is_emulator.then(|| EMULATOR.to_owned())).ok_or_else(|| {
        Error::invalid_argument("the location does not say which account has the container").with_hint(
            "write abfss://container@account.dfs.core.windows.net/path, or set the storage option \
             'azure_storage_account_name'",
        )
    })?;
    place(&format!("abfss://{}@{account}.{PUBLIC}{}", bucket(url)?, url.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known() {
        for name in NAMES {
            assert!(name.parse::<Key>().is_ok(), "{name}");
        }
    }
}
