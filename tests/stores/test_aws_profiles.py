"""Credentials come from the configuration files of the AWS tools: keys, programs, roles and single sign-on."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake

from .s3_server import S3Server

ROWS = pa.table({"id": [1, 2, 3]})
URI = "s3://tables/t"
END = (datetime.now(timezone.utc) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Services(ThreadingHTTPServer):
    """A server that gives out the S3 server's keys for roles and for single sign-on, as AWS does."""

    def __init__(self, key: str, secret: str) -> None:
        super().__init__(("127.0.0.1", 0), ServicesHandler)
        self.key, self.secret, self.asked = key, secret, list[str]()
        self.endpoint = f"http://127.0.0.1:{self.server_address[1]}"


class ServicesHandler(BaseHTTPRequestHandler):
    server: Services

    def do_POST(self) -> None:
        """Answers `AssumeRole`."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append(body)
        assert "Action=AssumeRole" in body
        assert "Credential=base-key/" in self.headers["Authorization"]
        keys = f"<AccessKeyId>{self.server.key}</AccessKeyId><SecretAccessKey>{self.server.secret}</SecretAccessKey>"
        self.answer(
            '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>'
            f"{keys}<SessionToken>session</SessionToken><Expiration>{END}</Expiration></Credentials>"
            "<AssumedRoleUser><AssumedRoleId>a:b</AssumedRoleId><Arn>arn:aws:sts::1:assumed-role/r/s</Arn>"
            "</AssumedRoleUser></AssumeRoleResult></AssumeRoleResponse>"
        )

    def do_GET(self) -> None:
        """Answers the request `GetRoleCredentials` of single sign-on."""
        self.server.asked.append(self.path)
        if self.headers["x-amz-sso_bearer_token"] != "sso-token":  # noqa: S105
            self.answer(json.dumps({"message": "Session token not found or invalid"}), 401)
            return
        keys = {
            "accessKeyId": self.server.key,
            "secretAccessKey": self.server.secret,
            "sessionToken": "session",
        }
        end = int(datetime.fromisoformat(END.replace("Z", "+00:00")).timestamp() * 1000)
        self.answer(json.dumps({"roleCredentials": keys | {"expiration": end}}))

    def answer(self, text: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


class Home:
    """A home directory with files of the AWS tools."""

    def __init__(self, directory: Path, services: Services) -> None:
        self.aws, self.services = directory / ".aws", services
        self.aws.mkdir()

    def write(self, config: str = "", credentials: str = "") -> None:
        (self.aws / "config").write_text(config)
        (self.aws / "credentials").write_text(credentials)

    def log_in(self, start: str, token: str) -> None:
        cache = self.aws / "sso" / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        content = {"accessToken": token, "expiresAt": END, "region": "us-east-1", "startUrl": start}
        name = hashlib.sha1(start.encode(), usedforsecurity=False).hexdigest()
        (cache / f"{name}.json").write_text(json.dumps(content))


@pytest.fixture
def place(s3: S3Server) -> dict[str, str]:
    """Returns the options for a server that has a table `t`, without credentials and region."""
    write_deltalake(URI, ROWS, storage_options=s3.options())
    return {name: s3.options()[name] for name in ("aws_endpoint_url", "aws_allow_http")}


@pytest.fixture
def home(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    settings = s3.settings()
    services = Services(settings["access_key"], settings["secret_key"])
    threading.Thread(target=services.serve_forever, daemon=True).start()
    for name in (
        "AWS_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_REGION",
        "AWS_ACCESS_KEY_ID",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", services.endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SSO", services.endpoint)
    yield Home(tmp_path, services)
    services.shutdown()


def keys(home: Home, profile: str) -> str:
    key, secret = home.services.key, home.services.secret
    return f"[{profile}]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"


def count(place: dict[str, str], **options: str) -> int:
    return DeltaTable(URI, storage_options={**place, **options}).count()


def refusal(place: dict[str, str], **options: str) -> str:
    with pytest.raises(deltalog.DeltaError) as raised:
        count(place, **options)
    return f"{type(raised.value).__name__}: {raised.value}"


def test_keys_of_profiles(place: dict[str, str], home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write(
        credentials=keys(home, "default") + keys(home, "other") + "[wrong]\naws_access_key_id = x\n"
        "aws_secret_access_key = y\n"
    )
    assert count(place) == 3
    assert count(place, aws_profile="other") == 3
    assert "AccessDeniedError: the store does not know the access key" in refusal(place, aws_profile="wrong")
    monkeypatch.setenv("AWS_PROFILE", "wrong")
    assert "does not know the access key" in refusal(place)
    # An option has precedence over the environment.
    assert count(place, aws_profile="other") == 3


def test_the_order_of_places(place: dict[str, str], home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials are looked up first in options, then in the environment, then in the profile."""
    wrong = "[default]\naws_access_key_id = x\naws_secret_access_key = y\n"
    home.write(credentials=wrong + keys(home, "right"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", home.services.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", home.services.secret)
    assert count(place) == 3
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    assert "AccessDeniedError" in refusal(place)
    assert count(place, aws_profile="right") == 3
    assert count(place, aws_access_key_id=home.services.key, aws_secret_access_key=home.services.secret) == 3
    text = refusal(place, aws_profile="right", aws_access_key_id=home.services.key)
    assert "InvalidArgumentError: the storage option 'aws_profile' and aws_access_key_id" in text


def test_a_program(place: dict[str, str], home: Home, tmp_path: Path) -> None:
    answer = {
        "Version": 1,
        "AccessKeyId": home.services.key,
        "SecretAccessKey": home.services.secret,
        "Expiration": END,
    }
    (tmp_path / "answer").write_text(json.dumps(answer))
    program = f"{sys.executable} -c \"print(open('{tmp_path}/answer').read())\""
    home.write(
        f"[profile tool]\ncredential_process = {program}\n[profile broken]\ncredential_process = exit 3\n"
    )
    assert count(place, aws_profile="tool") == 3
    text = refusal(place, aws_profile="broken")
    assert "AccessDeniedError: the credentials of the profile 'broken' failed" in text
    assert "exited with code exit status: 3" in text


def test_a_role(s3: S3Server, place: dict[str, str], home: Home) -> None:
    s3.set(session_token="session")  # noqa: S106
    home.write(
        "[profile role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n",
        "[base]\naws_access_key_id = base-key\naws_secret_access_key = base-secret\n",
    )
    table = DeltaTable(URI, storage_options={**place, "aws_profile": "role"})
    assert table.count() == 3
    write_deltalake(table, ROWS, mode="append")
    # The credentials are kept until shortly before they expire.
    assert len(home.services.asked) == 1
    assert "RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr" in home.services.asked[0]


def test_single_sign_on(s3: S3Server, place: dict[str, str], home: Home) -> None:
    s3.set(session_token="session")  # noqa: S106
    start = "https://example.awsapps.com/start"
    home.write(
        f"[profile sso]\nsso_start_url = {start}\nsso_region = us-east-1\nsso_account_id = 1\nsso_role_name = r\n"
    )
    text = refusal(place, aws_profile="sso")
    assert "the profile 'sso'" in text
    assert "aws sso login" in text
    home.log_in(start, "ended")
    text = refusal(place, aws_profile="sso")
    assert "Session token not found or invalid" in text
    assert "aws sso login" in text
    home.services.asked.clear()
    home.log_in(start, "sso-token")
    assert count(place, aws_profile="sso") == 3
    assert home.services.asked == ["/federation/credentials?role_name=r&account_id=1"]


def test_the_region_of_a_profile(s3: S3Server, place: dict[str, str], home: Home) -> None:
    home.write("[default]\nregion = eu-north-1\n[profile other]\nregion = eu-west-1\n", keys(home, "default"))
    s3.set(region="eu-north-1")
    assert count(place) == 3
    assert "'eu-north-1'" in refusal(place, aws_region="us-east-1")
    assert "aws_region" in refusal(place, aws_profile="other") or "no credentials" in refusal(
        place, aws_profile="other"
    )


def test_a_profile_that_is_named_must_have_credentials(
    place: dict[str, str], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write("[profile empty]\nregion = us-east-1\n")
    assert "AccessDeniedError: the profile 'empty' has no credentials" in refusal(place, aws_profile="empty")
    text = refusal(place, aws_profile="missing")
    assert "AccessDeniedError: the credentials of the profile 'missing' failed" in text
    assert "was not defined" in text
    monkeypatch.setenv("AWS_PROFILE", "missing")
    assert "the profile 'missing'" in refusal(place)


def test_without_a_profile_the_metadata_service_is_asked(place: dict[str, str], home: Home) -> None:
    """Without a profile, the machine's metadata service is asked. The test machine has no such service, and the
    attempt ends within a second, not minutes.
    """
    home.write("[default]\nregion = us-east-1\n")
    text = refusal(place, aws_metadata_endpoint="http://127.0.0.1:1")
    assert "no answer to PUT 127.0.0.1:1/latest/api/token" in text


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        (
            {"AWS_EC2_METADATA_DISABLED": "true"},
            "AWS_EC2_METADATA_DISABLED forbids asking the machine's metadata service",
        ),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "{metadata}/role"}, "credentials has no token file"),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/absent"}, "the web identity token file has no role"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_the_machine_is_not_asked_if_settings_forbid_it(
    place: dict[str, str],
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    words: str,
) -> None:
    """The machine's metadata service would provide a role that the user does not want. Profiles and keys still work."""
    asked = []

    class Metadata(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def do_GET(self) -> None:
            self.do_PUT()

    with ThreadingHTTPServer(("127.0.0.1", 0), Metadata) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        for name, value in environment.items():
            monkeypatch.setenv(name, value.format(metadata=endpoint))
        home.write("[default]\nregion = us-east-1\n")
        text = refusal(place, aws_metadata_endpoint=endpoint)
        assert "AccessDeniedError" in text
        assert words in text
        home.write(keys(home, "default"))
        assert count(place) == len(ROWS)
        server.shutdown()
    assert asked == []
