"""Hadoop's settings for object stores are converted to deltalog's storage options."""

import pytest

from deltalog import UnsupportedFeatureError
from deltalog.spark.hadoop_settings import storage_options

pytestmark = pytest.mark.newest

KEYS = {"fs.s3a.access.key": "key", "fs.s3a.secret.key": "secret"}
OPTIONS = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
PROVIDERS = "fs.s3a.aws.credentials.provider"
PACKAGE = "org.apache.hadoop.fs.s3a."
ACCOUNT = "account.dfs.core.windows.net"
AZURE = f"data@{ACCOUNT}"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        (KEYS, OPTIONS),
        ({**KEYS, "fs.s3a.session.token": "token"}, {**OPTIONS, "aws_session_token": "token"}),
        ({"fs.s3a.access.key": "key"}, {}),
        # A setting for a bucket takes precedence over the setting for all buckets.
        ({**KEYS, "fs.s3a.bucket.b.access.key": "other"}, {**OPTIONS, "aws_access_key_id": "other"}),
        ({**KEYS, "fs.s3a.bucket.c.access.key": "other"}, OPTIONS),
        ({"fs.s3a.endpoint.region": "eu-west-1"}, {"aws_region": "eu-west-1"}),
        ({"fs.s3a.endpoint.region": "sdk"}, {}),
        # If the endpoint is a host of Amazon, only its region is used.
        ({"fs.s3a.endpoint": "s3.amazonaws.com"}, {}),
        ({"fs.s3a.endpoint": "s3.eu-west-1.amazonaws.com"}, {"aws_region": "eu-west-1"}),
        ({"fs.s3a.requester.pays.enabled": "true"}, {"aws_request_payer": "true"}),
        (
            {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "arn"},
            {"aws_server_side_encryption": "aws:kms", "aws_sse_kms_key_id": "arn"},
        ),
        (
            {
                "spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore",
                "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "log",
                "spark.io.delta.storage.S3DynamoDBLogStore.ddb.region": "eu-west-1",
            },
            {"log_store": "dynamodb", "dynamodb_table": "log", "dynamodb_region": "eu-west-1"},
        ),
        (
            {"spark.delta.logStore.s3.impl": "io.delta.storage.S3DynamoDBLogStore"},
            {"log_store": "dynamodb", "dynamodb_scheme": "s3"},
        ),
        ({"spark.delta.logStore.s3.impl": "io.delta.storage.S3SingleDriverLogStore"}, {}),
    ],
)
def test_settings_of_s3(settings: dict[str, str], options: dict[str, str]) -> None:
    assert storage_options("s3", "b", settings) == options


@pytest.mark.parametrize(
    ("settings", "endpoint", "is_in_host"),
    [
        ({"fs.s3a.endpoint": "store:9000", "fs.s3a.path.style.access": "true"}, "https://store:9000", False),
        ({"fs.s3a.endpoint": "https://store:9000"}, "https://b.store:9000", True),
        ({"fs.s3a.endpoint": "http://127.0.0.1:9000"}, "http://127.0.0.1:9000", False),
        (
            {"fs.s3a.endpoint": "127.0.0.1:9000", "fs.s3a.connection.ssl.enabled": "false"},
            "http://127.0.0.1:9000",
            False,
        ),
    ],
)
def test_endpoints_of_s3(settings: dict[str, str], endpoint: str, is_in_host: bool) -> None:
    options = storage_options("s3", "b", settings)
    assert options.pop("aws_endpoint_url") == endpoint
    assert options.pop("aws_virtual_hosted_style_request", None) == ("true" if is_in_host else None)
    assert options.pop("aws_allow_http", None) == ("true" if endpoint.startswith("http:") else None)
    assert options == {}


@pytest.mark.parametrize(
    ("providers", "options"),
    [
        (f"{PACKAGE}SimpleAWSCredentialsProvider", OPTIONS),
        (f"{PACKAGE}TemporaryAWSCredentialsProvider", {}),
        (f"{PACKAGE}AnonymousAWSCredentialsProvider", {"aws_skip_signature": "true"}),
        (
            f"amazon.EnvironmentVariableCredentialsProvider,\n{PACKAGE}SimpleAWSCredentialsProvider",
            OPTIONS,
        ),
        # If the class is unknown, credentials come from the environment or the machine.
        (f"com.example.Own, {PACKAGE}SimpleAWSCredentialsProvider", {}),
        (f"{PACKAGE}auth.IAMInstanceCredentialsProvider", {}),
    ],
)
def test_the_first_class_that_has_credentials_gives_them(providers: str, options: dict[str, str]) -> None:
    assert storage_options("s3", "b", {**KEYS, PROVIDERS: providers}) == options


def test_the_environment_has_precedence_over_keys_if_its_class_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key of the environment")
    names = f"a.EnvironmentVariableCredentialsProvider,{PACKAGE}SimpleAWSCredentialsProvider"
    assert storage_options("s3", "b", {**KEYS, PROVIDERS: names}) == {}


def test_files_that_only_hadoop_can_decrypt_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="CSE-KMS"):
        storage_options("s3", "b", {"fs.s3a.encryption.algorithm": "CSE-KMS"})


OAUTH = {
    "fs.azure.account.auth.type": "OAuth",
    "fs.azure.account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
    "fs.azure.account.oauth2.client.id": "id",
    f"fs.azure.account.oauth2.client.secret.{ACCOUNT}": "secret",
    "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
}
MSI = "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider"


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        ({f"fs.azure.account.key.{ACCOUNT}": "key"}, {"azure_storage_account_key": "key"}),
        ({"fs.azure.account.key.account.blob.core.windows.net": "key"}, {"azure_storage_account_key": "key"}),
        ({"fs.azure.account.key.other.dfs.core.windows.net": "key"}, {}),
        (
            {f"fs.azure.account.auth.type.{ACCOUNT}": "SAS", f"fs.azure.sas.fixed.token.{ACCOUNT}": "sas"},
            {"azure_storage_sas_token": "sas"},
        ),
        ({"fs.azure.sas.data.account.blob.core.windows.net": "sas"}, {"azure_storage_sas_token": "sas"}),
        (
            OAUTH,
            {
                "azure_storage_client_id": "id",
                "azure_storage_client_secret": "secret",
                "azure_storage_tenant_id": "tenant",
                "azure_storage_authority_host": "https://login.microsoftonline.com",
            },
        ),
        ({**OAUTH, "fs.azure.account.oauth.provider.type": MSI}, {"azure_storage_client_id": "id"}),
        ({"fs.azure.account.auth.type": "Custom", f"fs.azure.account.key.{ACCOUNT}": "key"}, {}),
    ],
)
def test_settings_of_azure(settings: dict[str, str], options: dict[str, str]) -> None:
    assert storage_options("abfss", AZURE, settings) == options


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        ({"fs.gs.auth.service.account.json.keyfile": "/key"}, {"google_service_account": "/key"}),
        ({"google.cloud.auth.service.account.json.keyfile": "/key"}, {"google_service_account": "/key"}),
        (
            {"fs.gs.auth.type": "COMPUTE_ENGINE", "fs.gs.auth.service.account.json.keyfile": "/key"},
            {},
        ),
        ({"fs.gs.auth.type": "UNAUTHENTICATED"}, {"google_skip_signature": "true"}),
        ({"fs.gs.storage.root.url": "https://store/"}, {"google_base_url": "https://store"}),
    ],
)
def test_settings_of_gcs(settings: dict[str, str], options: dict[str, str]) -> None:
    assert storage_options("gs", "b", settings) == options


KERBEROS = {"spark.kerberos.principal": "ann@LAKE", "spark.kerberos.keytab": "/keys/ann"}


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        ({"hdfs_user": ""}, {}),
        (
            {"hdfs_user": "ann", "dfs.ha.namenodes.Lake": "a,b"},
            {"hdfs_user": "ann", "dfs.ha.namenodes.Lake": "a,b"},
        ),
        ({"hadoop.security.authentication": "kerberos"}, {"hadoop.security.authentication": "kerberos"}),
        (KERBEROS, {"hdfs_kerberos_principal": "ann@LAKE", "hdfs_kerberos_keytab": "/keys/ann"}),
        # Without a keytab, the user's Kerberos ticket is used.
        ({"spark.kerberos.principal": "ann@LAKE"}, {}),
    ],
)
def test_settings_of_hdfs(settings: dict[str, str], options: dict[str, str]) -> None:
    assert storage_options("hdfs", "lake:8020", settings) == options
