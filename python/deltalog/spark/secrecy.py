"""Keeps storage options that may be secrets out of places where other users could see them.

- Spark hides options by their names in plans, and therefore in its event log and its user interface. By default it
  hides only some secrets: it does not recognize `aws_access_key_id` and the account keys of Azure.
- The session catalog stores the options of a table in its database as plain text. So options that may be secrets are
  refused before they become part of a plan.
- At the level DEBUG, py4j logs the messages between this package and the JVM. Possible secrets in them are replaced.
"""

import logging
import re

from pyspark.sql import SparkSession

from deltalog.spark.errors import UnsupportedFeatureError
from deltalog.spark.options import Options

# The storage options that are not secret. Every other option may be a secret, including options that the core does not
# know yet.
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
    "cache_dir",
    "cache_size",
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
    "io_concurrency",
    "log_store",
    "max_retries",
    "proxy_excludes",
    "proxy_url",
    "read_memory",
    "read_timeout",
    "retry_timeout",
    "timeout",
    "user_agent",
}
# A URL that contains a user name or a password.
_WITH_USER = re.compile(r"://[^/]*@")

_SETTING = "spark.sql.redaction.options.regex"
_SPARKS_OWN = "(?i)url"
# A pattern for the names of storage options and of Hadoop's settings that are hidden.
_HIDDEN = r"(?i:^(aws|azure|google)_\w*(key|sas|credentials)|^fs[.].*[.](key|sas)\b)"
# A pattern for Hadoop's settings whose values are not secret, by the ends of their names.
_PLAIN_SETTINGS = re.compile(r"[.](endpoint|region|path\.style\.access|impl|enabled)$")
# A JSON entry with a value that may be a secret. The JSON may be nested in other JSON strings, so its quotes may be
# escaped. The closing quote of the value has as many escapes as its opening quote.
_IN_JSON = re.compile(
    r"""(?is)(\\*"(?:fs[.]|google[.]|aws_|azure_|google_)[^"\\]*(?:key|sas|secret|token|password|credential)"""
    r"""[^"\\]*\\*": ?(?P<escape>\\*)")(?:(?!(?<!\\)(?P=escape)").)+"""
)


_USER = re.compile(r"""://[^/@"\s]+:[^/@"\s]+@""")


def possible_secrets(options: Options) -> set[str]:
    """Returns the names of those storage options that may be secrets."""
    given = options.storage.items()
    return {name for name, value in given if name not in _PLAIN or _WITH_USER.search(value) is not None}


def check_table_options(options: Options) -> None:
    """Raises `UnsupportedFeatureError` if options of a table may be secrets, without showing their values."""
    settings = {name for name in options.hadoop if _PLAIN_SETTINGS.search(name) is None}
    refused = sorted(possible_secrets(options) | settings)
    if refused:
        raise UnsupportedFeatureError(
            f"options of a table that may be secrets ({', '.join(refused)}) are refused, because the session catalog "
            "keeps them as they are: set Hadoop's settings for the session, for one bucket as in "
            "fs.s3a.bucket.<bucket>.access.key"
        )


def hide_secrets(spark: SparkSession) -> None:
    """Makes the plans of a session hide storage options that may be secrets, in addition to the options that they
    already hide.
    """
    # Spark's own default is given here, because under Spark Connect a setting that was never set has no default.
    hidden = str(spark.conf.get(_SETTING, _SPARKS_OWN))
    if _HIDDEN not in hidden:
        spark.conf.set(_SETTING, f"{hidden}|{_HIDDEN}" if hidden else _HIDDEN)


def hide_from_py4j() -> None:
    """Keeps possible secrets in this package's JSON texts, and user names and passwords in URLs, out of py4j's log."""
    logger = logging.getLogger("py4j.clientserver")
    if _hide_values not in logger.filters:
        logger.addFilter(_hide_values)


def _hide_values(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    hidden = _USER.sub("://…@", _IN_JSON.sub(r"\1…", text))
    if hidden != text:
        record.msg, record.args = hidden, ()
    return True
