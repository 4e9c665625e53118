"""Tests which table locations and which options are allowed under Spark Connect."""

import pytest

from deltalog import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.connect.place import connect_uri, place_of
from deltalog.spark.connect.reads import may_be
from deltalog.spark.options import Options

pytestmark = pytest.mark.newest


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/a table", "file:///a%20table"),
        ("file:/a table", "file:///a%20table"),
        ("S3A://Bucket/a b%/c=d", "s3a://Bucket/a%20b%25/c=d"),
        ("abfss://data@account.dfs.core.windows.net/t", "abfss://data@account.dfs.core.windows.net/t"),
        ("hdfs://lake:8020/t", "hdfs://lake:8020/t"),
        ("gs://bucket", "gs://bucket"),
    ],
)
def test_paths_are_not_escaped(path: str, uri: str) -> None:
    assert connect_uri(path) == uri


def test_other_places_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="relative"):
        connect_uri("table")
    with pytest.raises(UnsupportedFeatureError, match="viewfs"):
        connect_uri("viewfs://lake/t")


def test_a_place_has_the_url_of_the_core() -> None:
    options = Options({"path": "s3a://bucket/a t", "AWS_Region": "eu-west-1", "versionAsOf": "1"})
    assert place_of(options) == ("s3://bucket/a%20t", {"aws_region": "eu-west-1"})
    account = Options({"path": "az://data/t", "azure_storage_account_name": "lake"})
    assert place_of(account).uri == "abfss://data@lake.dfs.core.windows.net/t"
    with pytest.raises(InvalidArgumentError, match="credentials") as refused:
        place_of(Options({"path": "s3://key:hidden@bucket/t"}))
    assert "hidden" not in str(refused.value)


def test_local_files_have_no_options_of_a_store() -> None:
    assert place_of(Options({"path": "/a t"})) == ("file:///a%20t", None)
    with pytest.raises(InvalidArgumentError, match="'aws_region' is unknown for local files"):
        place_of(Options({"path": "/a t", "aws_region": "eu-west-1"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("aws_secret_access_key", "hidden"),
        ("AWS_ACCESS_KEY_ID", "hidden"),
        ("aws_session_token", "hidden"),
        ("azure_storage_account_key", "hidden"),
        ("google_service_account_key", "hidden"),
        ("google_made_up_later", "hidden"),
        ("fs.azure.account.key", "hidden"),
        ("aws_endpoint_url", "https://user:hidden@store"),
    ],
)
@pytest.mark.parametrize("path", ["s3://bucket/t", "/local"])
def test_what_may_be_a_secret_is_refused(path: str, name: str, value: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=rf"\({name.lower()}\) are refused") as refused:
        place_of(Options({"path": path, name: value}))
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("s3a://bucket/a%20t/", "s3://bucket/a%20t", True),
        ("s3a://bucket/t", "s3://bucket/t2", False),
        # The account may come from an option or from the server's settings.
        ("az://data/t", "abfss://data@lake.dfs.core.windows.net/t", True),
        ("az://data/t", "abfss://other@lake.dfs.core.windows.net/t", False),
        ("file:///a", "s3://a", False),
    ],
)
def test_which_urls_may_be_one_table(one: str, other: str, expected: bool) -> None:
    assert may_be(one, other) == expected
