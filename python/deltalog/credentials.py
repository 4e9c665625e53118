"""Gets credentials from the object that a program passes as `credential_provider=`.

The object can be:

- a function. It is called without arguments, and returns an object of one of the next four kinds, or a mapping, which
  may contain an expiration time;
- a boto3 session: `get_credentials()` is called;
- botocore credentials: `get_frozen_credentials()` is called every minute, because botocore renews them itself;
- an azure-identity credential: `get_token("https://storage.azure.com/.default")` is called;
- google-auth credentials: `refresh()` is called if they are not `valid`.

None of these packages has to be installed unless its objects are passed. The names in a mapping are those that these
packages, the clouds' command-line tools, Polars and obstore use, in upper or lower case, with or without underscores:

- for S3 `access_key_id` (or `access_key`), `secret_access_key` (or `secret_key`) and `session_token` (or `token`);
- for Azure `account_key`, `sas_token` or `token`;
- for Google Cloud Storage `token`;
- `expires_at` (or `expiration`, `expiry`, `expires_on`): a datetime (without a zone: UTC), text in ISO 8601, or seconds
  since the epoch.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

__all__ = ["CredentialProvider"]

CredentialProvider: TypeAlias = Callable[[], Any] | Any
"""A function that returns credentials, or an object of boto3, botocore, azure-identity or google-auth."""

EXPECTED = (
    "a provider returns a mapping such as {'access_key_id': …, 'secret_access_key': …, 'session_token': …, "
    "'expires_at': …} or {'token': …, 'expires_at': …}, or credentials of botocore, azure-identity or google-auth"
)

_AZURE_SCOPE = "https://storage.azure.com/.default"
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"

# The time in seconds after which a provider is asked again. Credentials that renew themselves do so at least ten
# minutes before they expire.
_ASK_AGAIN_AFTER = 60.0

# The names in a mapping, in lower case, without underscores and without the prefixes `aws`, `azure`, `storage` and
# `google`.
_IDS = ("accesskeyid", "accesskey")
_SECRETS = ("secretaccesskey", "secretkey")
_ACCOUNT_KEYS = ("accountkey", "accesskey")
_SIGNATURES = ("sastoken", "saskey")
_TOKENS = ("sessiontoken", "token", "securitytoken")
_BEARERS = ("bearertoken", "accesstoken", "token")
_ENDS = ("expiresat", "expiration", "expiry", "expirytime", "expireson")
_PREFIXES = ("aws", "azure", "storage", "google")


class NotCredentialsError(Exception):
    """Raised if a provider has returned an object that does not contain credentials.

    The message is a noun phrase, because users see "the credential provider NAME returned MESSAGE".
    """


class Answer(NamedTuple):
    """Credentials from a provider, as the compiled module expects them. They are never printed."""

    kind: str
    """`access_key`, `account_key`, `sas` or `token`."""
    secrets: tuple[str, ...]
    expires_at: float | None = None
    """Time in seconds since the epoch."""
    ask_again_after: float | None = None
    """Duration in seconds."""

    def __repr__(self) -> str:
        return f"Answer({self.kind!r}, …)"


def is_provider(provider: object) -> bool:
    """Returns whether an object can provide credentials."""
    return is_foreign(provider) or (callable(provider) and not inspect.iscoroutinefunction(provider))


def is_foreign(provider: object) -> bool:
    """Returns whether the provider is an object of a known package and not a function. Such an object may hold
    secrets.
    """
    return (
        any(hasattr(provider, name) for name in ("get_frozen_credentials", "get_credentials", "get_token"))
        or _is_googles(provider)
        or hasattr(provider, "access_key")
    )


def ask(provider: Any) -> Answer:
    """Gets credentials from a provider.

    Raises:
        NotCredentialsError: the provider returned an object that does not contain credentials.
        Exception: any exception that the provider raises.
    """
    if callable(provider) and not is_foreign(provider):
        return _read(provider())
    return _read(provider)


def _read(source: Any) -> Answer:
    if isinstance(source, Mapping):
        return _of_mapping(source, None)
    if hasattr(source, "get_frozen_credentials"):
        frozen = source.get_frozen_credentials()
        key = _access_key(frozen.access_key, frozen.secret_key, frozen.token)
        return key._replace(ask_again_after=_ASK_AGAIN_AFTER)
    if hasattr(source, "get_credentials"):
        found = source.get_credentials()
        if found is None:
            raise NotCredentialsError("no credentials: the session finds none")
        return _read(found)
    if hasattr(source, "access_key") and hasattr(source, "secret_key"):
        return _access_key(source.access_key, source.secret_key, getattr(source, "token", None))
    if hasattr(source, "get_token"):
        return _read(_not_awaited(source.get_token(_AZURE_SCOPE)))
    if _is_googles(source):
        return _of_google(source)
    if hasattr(source, "token") and hasattr(source, "expires_on"):
        return Answer("token", (_text(source.token, "token"),), _end(source.expires_on))
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], Mapping):
        return _of_mapping(source[0], _end(source[1]))
    _not_awaited(source)
    raise NotCredentialsError(f"an object of type {type(source).__name__}")


def _is_googles(source: object) -> bool:
    return all(hasattr(source, name) for name in ("refresh", "token", "expiry", "valid"))


def _of_google(source: Any) -> Answer:
    # The credentials of a service account have no scope until one is set.
    if getattr(source, "requires_scopes", False):
        source = source.with_scopes([_GOOGLE_SCOPE])
    if not source.valid:
        source.refresh(_google_request())
    return Answer("token", (_text(source.token, "token"),), _end(source.expiry))


def _google_request() -> Any:
    # google-auth can be installed without `requests`.
    try:
        return import_module("google.auth.transport.requests").Request()
    except ImportError:
        pool = import_module("urllib3").PoolManager()
        return import_module("google.auth.transport.urllib3").Request(pool)


def _of_mapping(source: Mapping[Any, Any], end: float | None) -> Answer:
    values = {_plain(name): value for name, value in source.items() if value is not None}

    def first(names: Iterable[str]) -> Any:
        return next((values[name] for name in names if name in values), None)

    if end is None:
        end = _end(first(_ENDS))
    if (secret := first(_SECRETS)) is not None:
        return _access_key(first(_IDS), secret, first(_TOKENS))._replace(expires_at=end)
    for kind, known in (("account_key", _ACCOUNT_KEYS), ("sas", _SIGNATURES), ("token", _BEARERS)):
        if (secret := first(known)) is not None:
            return Answer(kind, (_text(secret, known[-1]),), end)
    names = ", ".join(sorted(repr(name) for name in source if isinstance(name, str) and len(name) <= 40))
    raise NotCredentialsError(f"a mapping without credentials, with the names {names or '(no strings)'}")


def _plain(name: object) -> str:
    plain = str(name).lower().replace("_", "")
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    return plain


def _access_key(key: object, secret: object, token: object) -> Answer:
    secrets = [_text(key, "access key"), _text(secret, "secret key")]
    if token is not None:
        secrets.append(_text(token, "session token"))
    return Answer("access_key", tuple(secrets))


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise NotCredentialsError(f"a {what} of type {type(value).__name__}, which is not a string")
    return value


def _end(value: object) -> float | None:
    """Returns when credentials expire, in seconds since the epoch."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            # Python 3.10 does not parse the suffix Z.
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            raise NotCredentialsError("an expiry time that is not in ISO 8601") from None
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12:
        return float(value)
    raise NotCredentialsError(f"an expiry time of type {type(value).__name__}")


def _not_awaited(value: Any) -> Any:
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise NotCredentialsError("an awaitable; pass a provider that is not asynchronous")
    return value
