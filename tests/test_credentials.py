"""Credential providers may return credentials in many forms. These tests imitate the objects of other packages."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from deltalog import DeltaTable
from deltalog.arguments import store_argument
from deltalog.credentials import Answer, NotCredentialsError, ask, is_provider
from deltalog.errors import InvalidArgumentError

END = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
SECONDS = END.timestamp()


class ReadOnlyCredentials(NamedTuple):
    """An imitation of `botocore.credentials.ReadOnlyCredentials`."""

    access_key: str
    secret_key: str
    token: str | None


class AccessToken(NamedTuple):
    """An imitation of `azure.core.credentials.AccessToken`."""

    token: str
    expires_on: int


class BotocoreCredentials:
    """An imitation of `botocore.credentials.Credentials`, whose attributes may be outdated, unlike its frozen
    credentials.
    """

    access_key, secret_key, token = "old", "old", None

    def get_frozen_credentials(self) -> Any:
        return ReadOnlyCredentials("id", "secret", "session")


class Session:
    """An imitation of `boto3.Session`."""

    region_name = "eu-north-1"

    def __init__(self, credentials: object) -> None:
        self._credentials = credentials

    def get_credentials(self) -> object:
        return self._credentials


class AzureCredential:
    """An imitation of the classes in `azure.identity`."""

    def get_token(self, *scopes: str, **_: object) -> Any:
        assert scopes == ("https://storage.azure.com/.default",)
        return AccessToken("token", int(SECONDS))


class AsyncAzureCredential:
    """An imitation of the classes in `azure.identity.aio`."""

    async def get_token(self, *_: str) -> object:
        return None


class GoogleCredentials:
    """An imitation of `google.oauth2.service_account.Credentials`."""

    def __init__(self, *, requires_scopes: bool) -> None:
        self.requires_scopes = requires_scopes
        self.token: str | None = None
        self.expiry: datetime | None = None

    @property
    def valid(self) -> bool:
        return self.token is not None

    def with_scopes(self, scopes: list[str]) -> GoogleCredentials:
        assert scopes == ["https://www.googleapis.com/auth/devstorage.read_write"]
        return GoogleCredentials(requires_scopes=False)

    def refresh(self, request: object) -> None:
        assert request == "request"
        assert not self.requires_scopes
        self.token, self.expiry = "token", END.replace(tzinfo=None)


@pytest.fixture(autouse=True)
def google_auth(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("google.auth.transport.requests")
    module.Request = lambda: "request"  # type: ignore[attr-defined]
    for name in ("google", "google.auth", "google.auth.transport"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)


KEY = ("id", "secret", "session")


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ({"access_key_id": "id", "secret_access_key": "secret"}, Answer("access_key", KEY[:2])),
        # The forms that AWS STS and `credential_process` use.
        (
            {
                "AccessKeyId": "id",
                "SecretAccessKey": "secret",
                "SessionToken": "session",
                "Expiration": "2030-01-02T03:04:05Z",
            },
            Answer("access_key", KEY, SECONDS),
        ),
        # The forms of botocore's metadata, of obstore, and of Polars.
        (
            {"access_key": "id", "secret_key": "secret", "token": "session", "expiry_time": END.isoformat()},
            Answer("access_key", KEY, SECONDS),
        ),
        (
            {"access_key_id": "id", "secret_access_key": "secret", "token": "session", "expires_at": END},
            Answer("access_key", KEY, SECONDS),
        ),
        (
            (
                {
                    "aws_access_key_id": "id",
                    "aws_secret_access_key": "secret",
                    "aws_session_token": "session",
                },
                int(SECONDS),
            ),
            Answer("access_key", KEY, SECONDS),
        ),
        (
            ({"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}, None),
            Answer("access_key", KEY[:2]),
        ),
        ({"azure_storage_account_key": "secret"}, Answer("account_key", ("secret",))),
        ({"access_key": "secret", "expires_at": None}, Answer("account_key", ("secret",))),
        (
            {"sas_token": "sv=1&sig=2", "expires_at": END.replace(tzinfo=None)},
            Answer("sas", ("sv=1&sig=2",), SECONDS),
        ),
        ({"token": "token", "expires_at": SECONDS}, Answer("token", ("token",), SECONDS)),
        (({"bearer_token": "token"}, SECONDS), Answer("token", ("token",), SECONDS)),
        (BotocoreCredentials(), Answer("access_key", KEY, None, 60.0)),
        (BotocoreCredentials().get_frozen_credentials(), Answer("access_key", KEY)),
        (Session(BotocoreCredentials()), Answer("access_key", KEY, None, 60.0)),
        (AzureCredential(), Answer("token", ("token",), SECONDS)),
        (
            AzureCredential().get_token("https://storage.azure.com/.default"),
            Answer("token", ("token",), SECONDS),
        ),
        (GoogleCredentials(requires_scopes=True), Answer("token", ("token",), SECONDS)),
        (GoogleCredentials(requires_scopes=False), Answer("token", ("token",), SECONDS)),
    ],
)
def test_all_forms_of_credentials(returned: Any, expected: Answer) -> None:
    assert ask(lambda: returned) == expected
    assert repr(ask(lambda: returned)) == f"Answer({expected.kind!r}, …)"
    if not isinstance(returned, (dict, tuple)):
        assert is_provider(returned)
        assert ask(returned) == expected


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "an object of type NoneType"),
        ("hidden", "an object of type str"),
        ({}, "a mapping without credentials"),
        ({"acces_key_id": "hidden"}, "with the names 'acces_key_id'"),
        ({"secret_access_key": "hidden"}, "a access key of type NoneType"),
        ({"access_key_id": "hidden", "secret_access_key": b"hidden"}, "a secret key of type bytes"),
        ({"token": "hidden", "expires_at": "soon"}, "not in ISO 8601"),
        (
            {"token": "hidden", "expires_at": timedelta(hours=1)},
            "an expiry time of type timedelta",
        ),
        ({"token": "hidden", "expires_at": True}, "an expiry time of type bool"),
        (Session(None), "the session finds none"),
        (AsyncAzureCredential(), "an awaitable"),
    ],
)
def test_errors_do_not_contain_the_secret(returned: Any, words: str) -> None:
    with pytest.raises(NotCredentialsError) as raised:
        ask(lambda: returned)
    assert words in str(raised.value)
    assert "hidden" not in str(raised.value)


async def later() -> None:
    """An asynchronous function, which cannot be a provider."""


@pytest.mark.parametrize("provider", ["hidden", {"token": "hidden"}, 1, later, SimpleNamespace()])
def test_invalid_providers_are_refused_at_once(provider: Any) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        DeltaTable("s3://tables/t", credential_provider=provider)
    assert "credential_provider cannot be" in str(raised.value)
    assert "hidden" not in str(raised.value)


def test_local_files_have_no_credentials(tmp_path: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="no credentials for local files"):
        DeltaTable(tmp_path, credential_provider=dict)


def test_a_boto_session_has_a_region() -> None:
    session = Session(BotocoreCredentials())
    assert store_argument("s3a://b/t", None, session).options == {"aws_region": "eu-north-1"}
    assert store_argument("s3://b/t", {"REGION": "x"}, session).options == {"REGION": "x"}
    assert store_argument("gs://b/t", None, session).options == {}
