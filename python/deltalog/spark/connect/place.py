"""Where a table is under Spark Connect, and how its store is reached.

The server's Python processes read and write with the core's clients. Credentials are those of their environment, of its
profiles, or of the machine. Options of a read or a write say the rest.

- An option that may be a secret is refused by name. It is in the plan that the client sends, and a Connect server shows
  plans: in the descriptions of its jobs and in its event log.
- What is pickled for workers has no secret either.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from deltalog._internal import canonical_uri
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.location import ensure_known
from deltalog.spark.options import Options

# The options of stores that are no secrets. All others are refused, also those that the core does not know yet.
_PLAIN = {
    "allow_http",
    "allow_invalid_certificates",
    "aws_allow_http",
    "aws_checksum_algorithm",
    "aws_default_region",
    "aws_disable_bulk_delete",
    "aws_disable_tagging",
    "aws_endpoint",
    "aws_endpoint_url",
    "aws_endpoint_url_s3",
    "aws_endpoint_url_sts",
    "aws_profile",
    "aws_region",
    "aws_request_payer",
    "aws_role_arn",
    "aws_role_session_name",
    "aws_s3_express",
    "aws_server_side_encryption",
    "aws_skip_signature",
    "aws_sse_bucket_key_enabled",
    "aws_sse_kms_key_id",
    "aws_virtual_hosted_style_request",
    "azure_disable_tagging",
    "azure_skip_signature",
    "azure_storage_account_name",
    "azure_storage_authority_host",
    "azure_storage_client_id",
    "azure_storage_endpoint",
    "azure_storage_tenant_id",
    "azure_storage_use_emulator",
    "azure_use_fabric_endpoint",
    "backoff_config.base",
    "backoff_config.init_backoff",
    "backoff_config.max_backoff",
    "connect_timeout",
    "dynamodb_endpoint",
    "dynamodb_region",
    "dynamodb_scheme",
    "dynamodb_table",
    "dynamodb_ttl",
    "google_base_url",
    "google_skip_signature",
    "hdfs_config_dir",
    "hdfs_kerberos_keytab",
    "hdfs_kerberos_principal",
    "hdfs_user",
    "log_store",
    "max_retries",
    "proxy_excludes",
    "proxy_url",
    "read_timeout",
    "retry_timeout",
    "timeout",
    "user_agent",
}
# A URL with the name or the password of a user.
_WITH_USER = re.compile(r"://[^/]*@")
# What Java does not escape in the paths of URLs.
_UNESCAPED = "/!$&'()*+,;=:@-._~"


class Place(NamedTuple):
    """A table's URL, and the options with which its store is reached; None for a local file system."""

    uri: str
    storage_options: Mapping[str, str] | None


def place_of(options: Options) -> Place:
    """Returns where the options say that a table is, in a process of the server.

    Raises:
        InvalidArgumentError: the path is relative, or an option is wrong.
        UnsupportedFeatureError: the store is unknown, or an option may be a secret.
    """
    check_plain(options)
    uri = connect_uri(options.path)
    if uri.startswith("file:"):
        return Place(uri, None)
    return Place(canonical_uri(uri, options.storage), options.storage)


def check_plain(options: Options) -> None:
    """Raises `UnsupportedFeatureError` for an option that may be a secret, without showing its value."""
    refused = [
        name
        for name, value in options.storage.items()
        if name not in _PLAIN or _WITH_USER.search(value) is not None
    ]
    refused += options.hadoop
    if refused:
        raise UnsupportedFeatureError(
            f"options that may be secrets ({', '.join(sorted(refused))}) are refused under Spark Connect, because the "
            "server shows options in the descriptions of its jobs and in its event log: set them in the environment of "
            "the server and of its executors, or in a profile there, and replace a secret that was sent"
        )


def connect_uri(path: str) -> str:
    """Returns the URL of a path in a process without Hadoop. A path without a scheme is local.

    The path is not escaped, as in Hadoop (`s3a://bucket/my table`).

    Raises `InvalidArgumentError` for a relative path, because the processes of the server have different working
    directories, and `UnsupportedFeatureError` for an unknown store.
    """
    local = path.removeprefix("file:") if path.startswith("file:") else path
    if "://" in local:
        ensure_known(path)
        scheme, _, rest = path.partition("://")
        authority, separator, within = rest.partition("/")
        return f"{scheme.lower()}://{authority}{separator}{quote(within, safe=_UNESCAPED)}"
    if not local.startswith("/"):
        raise InvalidArgumentError(
            f"the path {path!r} is relative, but must be absolute here, because the processes of Spark (and the "
            "client of a Connect server) have different working directories"
        )
    return "file://" + quote("/" + local.lstrip("/"))
