"""Converts Hadoop's settings for object stores to storage options of the core, so that users configure a session only
once.

The names come from the documentation of Hadoop's connectors: "Hadoop-AWS: S3A" (`fs.s3a.*`), "Hadoop Azure: ABFS"
(`fs.azure.*`), and Google's Cloud Storage connector (`fs.gs.*`, before its version 3 also `google.cloud.*`).
`Locations.java` finds the settings for HDFS, and the core's client for HDFS uses the same names as Hadoop. The names of
the settings for commits through DynamoDB come from the JVM connector's documentation.

If the settings do not contain credentials, or name a provider class that this module does not support, the credentials
come from the environment and the machine, as for all other users of the core.
"""

import ipaddress
import os
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from deltalog._internal import UnsupportedFeatureError

# The simple names of the provider classes that use `fs.s3a.access.key` and so on.
_TEMPORARY_KEYS = "TemporaryAWSCredentialsProvider"
_KEYS = "SimpleAWSCredentialsProvider"
_ENVIRONMENT = "EnvironmentVariableCredentialsProvider"
_ANONYMOUS = ("AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider")
_AMAZON = ".amazonaws.com"
# The JVM connector's class for commits through DynamoDB.
_DYNAMODB = "S3DynamoDBLogStore"
# The settings that may name this class, each with the scheme of the paths to which it applies.
_LOG_STORES = {
    "spark.delta.logStore.s3a.impl": "s3a",
    "spark.delta.logStore.class": "s3a",
    "spark.delta.logStore.s3.impl": "s3",
    "spark.delta.logStore.s3n.impl": "s3n",
}
# The key under which the settings contain the user name that a session sends to HDFS.
HDFS_USER = "hdfs_user"
# Spark's settings for logging in with Kerberos.
_KERBEROS = {
    "spark.kerberos.principal": "hdfs_kerberos_principal",
    "spark.kerberos.keytab": "hdfs_kerberos_keytab",
}
_ENCRYPTIONS = {"AES256": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}


def storage_options(scheme: str, authority: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the storage options for a store.

    Args:
        scheme: `s3`, `gs`, `abfss` or `hdfs`.
        authority: the bucket; in Azure `container@account.dfs.core.windows.net`; in HDFS the name node.
        settings: Hadoop's settings by name.

    Raises:
        UnsupportedFeatureError: files are encrypted in a way that only Hadoop supports.
    """
    known = {"s3": _s3, "gs": _gcs, "abfss": _azure, "hdfs": _hdfs}[scheme]
    return known(authority, settings)


def _s3(bucket: str, settings: Mapping[str, str]) -> dict[str, str]:
    of_bucket = f"fs.s3a.bucket.{bucket}."

    def setting(name: str) -> str:
        return (settings.get(of_bucket + name) or settings.get(f"fs.s3a.{name}") or "").strip()

    options = {
        **_s3_credentials(setting("aws.credentials.provider"), setting),
        **_s3_encryption(setting),
        **_s3_log_store(settings),
    }
    endpoint = setting("endpoint")
    region = setting("endpoint.region")
    if region == "sdk":  # The region is in the environment, where the core finds it, too.
        region = ""
    if endpoint and "://" not in endpoint:
        endpoint = f"{'http' if setting('connection.ssl.enabled') == 'false' else 'https'}://{endpoint}"
    host = urlsplit(endpoint).hostname or ""
    if host.endswith(_AMAZON):
        region = region or _region_of(host)
        # The region implies the endpoint. An endpoint in a private network is kept.
        if host == "s3" + _AMAZON or host == f"s3.{region}{_AMAZON}":
            endpoint = ""
    if endpoint:
        if endpoint.startswith("http://"):
            options["aws_allow_http"] = "true"
        if (
            not host.endswith(_AMAZON)
            and setting("path.style.access") != "true"
            and _may_be_in_host(bucket, host)
        ):
            parts = urlsplit(endpoint)
            endpoint = parts._replace(netloc=f"{bucket}.{parts.netloc}").geturl()
            options["aws_virtual_hosted_style_request"] = "true"
        options["aws_endpoint_url"] = endpoint
    if region:
        options["aws_region"] = region
    if setting("requester.pays.enabled") == "true":
        options["aws_request_payer"] = "true"
    return options


def _s3_credentials(providers: str, setting: Callable[[str], str]) -> dict[str, str]:
    """Returns the options for the first provider class in the list that has credentials.

    Returns no options if the core finds these credentials itself, or if the class is not supported.
    """
    access, secret, token = setting("access.key"), setting("secret.key"), setting("session.token")
    keys = {"aws_access_key_id": access, "aws_secret_access_key": secret}
    for provider in (providers or f"{_TEMPORARY_KEYS},{_KEYS}").split(","):
        name = provider.strip().rpartition(".")[2]
        if name == _TEMPORARY_KEYS and access and secret and token:
            return {**keys, "aws_session_token": token}
        if name == _KEYS and access and secret:
            return keys
        if name in _ANONYMOUS:
            return {"aws_skip_signature": "true"}
        if name == _ENVIRONMENT and "AWS_ACCESS_KEY_ID" not in os.environ:
            continue
        if name not in (_TEMPORARY_KEYS, _KEYS):
            break
    return {}


def _s3_encryption(setting: Callable[[str], str]) -> dict[str, str]:
    """Returns the options for encrypting new files. Log files are encrypted in the same way as data files."""
    algorithm = setting("encryption.algorithm") or setting("server-side-encryption-algorithm")
    if not algorithm:
        return {}
    if algorithm not in _ENCRYPTIONS:
        raise UnsupportedFeatureError(
            f"fs.s3a.encryption.algorithm is {algorithm}, which deltalog does not support: use AES256, SSE-KMS or "
            "DSSE-KMS"
        )
    options = {"aws_server_side_encryption": _ENCRYPTIONS[algorithm]}
    key = setting("encryption.key") or setting("server-side-encryption.key")
    return {**options, "aws_sse_kms_key_id": key} if key and algorithm != "AES256" else options


def _s3_log_store(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the options for committing through DynamoDB if the session's settings name the JVM connector's class for
    it, and otherwise no options.

    deltalog must then use DynamoDB as well: if only some of the writers used it, they would overwrite each other's
    commits.
    """
    schemes = {scheme for name, scheme in _LOG_STORES.items() if settings.get(name, "").endswith(_DYNAMODB)}
    if not schemes:
        return {}
    options = {
        "log_store": "dynamodb",
        "dynamodb_table": settings.get(f"spark.io.delta.storage.{_DYNAMODB}.ddb.tableName", ""),
        "dynamodb_region": settings.get(f"spark.io.delta.storage.{_DYNAMODB}.ddb.region", ""),
        # The JVM connector identifies a table by its path, which includes the scheme.
        "dynamodb_scheme": "" if "s3a" in schemes else min(schemes),
    }
    return {name: value for name, value in options.items() if value}


def _region_of(host: str) -> str:
    """Returns the region in an Amazon host name, such as `s3.eu-west-1.amazonaws.com`; empty if there is none."""
    parts = host.removesuffix(_AMAZON).split(".")
    return parts[-1] if parts[0] == "s3" and len(parts) > 1 else ""


def _may_be_in_host(bucket: str, host: str) -> bool:
    """Returns whether S3A would put the bucket into the name of the host."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." not in bucket and "_" not in bucket and bucket == bucket.lower()
    return False


def _gcs(_bucket: str, settings: Mapping[str, str]) -> dict[str, str]:
    kind = settings.get("fs.gs.auth.type", "").strip().upper()
    options = {}
    key_file = settings.get("fs.gs.auth.service.account.json.keyfile") or settings.get(
        "google.cloud.auth.service.account.json.keyfile"
    )
    if kind == "UNAUTHENTICATED":
        options["google_skip_signature"] = "true"
    elif key_file and kind in ("", "SERVICE_ACCOUNT_JSON_KEYFILE"):
        options["google_service_account"] = key_file
    root = settings.get("fs.gs.storage.root.url", "").rstrip("/")
    if root and root != "https://storage.googleapis.com":
        options["google_base_url"] = root
    return options


def _azure(authority: str, settings: Mapping[str, str]) -> dict[str, str]:
    container, _, host = authority.partition("@")
    hosts = (host, host.replace(".dfs.", ".blob.", 1))

    def setting(name: str) -> str:
        """Returns a setting of the account, else the setting for all accounts."""
        named = (f"fs.azure.{name}.{account}" for account in hosts)
        return next(filter(None, map(settings.get, named)), "") or settings.get(f"fs.azure.{name}", "")

    kind = setting("account.auth.type") or "SharedKey"
    if kind == "SharedKey":
        key = setting("account.key")
        if key:
            return {"azure_storage_account_key": key}
        # The settings of the wasb connector do not name the kind of credentials.
        token = next(filter(None, (settings.get(f"fs.azure.sas.{container}.{host}") for host in hosts)), "")
        return {"azure_storage_sas_token": token} if token else {}
    if kind == "SAS":
        token = setting("sas.fixed.token")
        return {"azure_storage_sas_token": token} if token else {}
    if kind != "OAuth":
        return {}
    client, secret = setting("account.oauth2.client.id"), setting("account.oauth2.client.secret")
    match setting("account.oauth.provider.type").rpartition(".")[2]:
        case "ClientCredsTokenProvider":
            endpoint = urlsplit(setting("account.oauth2.client.endpoint"))
            tenant = endpoint.path.strip("/").partition("/")[0]
            options = {
                "azure_storage_client_id": client,
                "azure_storage_client_secret": secret,
                "azure_storage_tenant_id": tenant,
            }
            if endpoint.netloc:
                options["azure_storage_authority_host"] = f"{endpoint.scheme}://{endpoint.netloc}"
            return {name: value for name, value in options.items() if value}
        case "MsiTokenProvider" if client:
            return {"azure_storage_client_id": client}
    return {}


def _hdfs(_name_node: str, settings: Mapping[str, str]) -> dict[str, str]:
    named = {_KERBEROS.get(name, name): value for name, value in settings.items()}
    options = {
        name: value
        for name, value in named.items()
        if value and name.startswith(("dfs.", "hadoop.", "hdfs_"))
    }
    # Unless Spark's settings have both a principal and a keytab, the core uses the user's Kerberos ticket.
    if not {*_KERBEROS.values()} <= options.keys():
        options = {name: value for name, value in options.items() if name not in _KERBEROS.values()}
    return options
