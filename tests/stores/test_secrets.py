"""No output that people or other processes can see contains a secret.

Everything that a session outputs is recorded: its log at the finest level, what it prints, the text and the traceback
of each error, the repr of each object, and pickled objects. Then this output and everything in the store is searched
for the secrets, also in encoded forms.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from .programs import environment
from .s3_server import S3Server, error, rule

SECRETS = {"aws_secret_access_key": "canary+secret/key", "aws_session_token": "canary/session=token"}

PROGRAM = r"""
import json, logging, os, pickle, subprocess, sys, time, traceback
logging.basicConfig(level=1, stream=sys.stdout, format="%(name)s %(message)s")
import pyarrow as pa
import deltalog
from deltalog import DeltaTable, write_deltalake

deltalog_logger = logging.getLogger("deltalog")
options = json.loads(sys.stdin.readline())
work = sys.argv[1]
data = pa.table({"id": [1, 2, 3]})

def attempt(work):
    try:
        print(repr(work()))
    except Exception as failure:
        print(repr(failure), vars(failure))
        traceback.print_exc(file=sys.stdout)

def use(uri, options, provider=None):
    opened = dict(storage_options=options, credential_provider=provider)
    attempt(lambda: write_deltalake(uri, data, mode="append", **opened))
    table = DeltaTable(uri, **opened)
    print(table, repr(table), pickle.dumps(table), table.history(), table.metadata())
    attempt(lambda: pa.table(table.to_arrow()))
    attempt(lambda: table.delete("id = 1"))

attempt(lambda: use("s3://tables/t", options))
for wrong in (
    {"aws_region": "elsewhere"},
    {"aws_secret_access_key": options["aws_secret_access_key"] + "x"},
    {"aws_endpoint_url": "http://127.0.0.1:1"},
    {"timeout": options["aws_secret_access_key"]},
    {"aws_secret_access_kee": options["aws_secret_access_key"]},
):
    attempt(lambda: use("s3://tables/t", {**options, **wrong}))
secret = options["aws_secret_access_key"].replace("/", "%2F")
for uri in (f"s3://key:{secret}@tables/t", f"s3://tables/t?secret={secret}", f"s3://tables/t#{secret}"):
    attempt(lambda: use(uri, options))
# Providers of all kinds return the same secrets.
names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
place = {name: value for name, value in options.items() if name not in names}
mapping = {name: options[name] for name in names}

def right():
    return mapping

class Credentials:
    access_key, secret_key, token = mapping.values()
    def get_frozen_credentials(self):
        return self

class Session:
    region_name = None
    def get_credentials(self):
        return Credentials()

asked = []
def fails_later():
    asked.append(1)
    if len(asked) > 1:
        raise ValueError("not " + mapping["aws_secret_access_key"])
    return mapping, time.time() + 0.5

for provider in (
    right,
    Session(),
    Credentials(),
    lambda: {**mapping, "aws_secret_access_key": mapping["aws_secret_access_key"] + "x"},
    lambda: {**mapping, "aws_secret_access_key": mapping["aws_secret_access_key"] + chr(10)},
    lambda: {**mapping, "expires_at": mapping["aws_secret_access_key"]},
    lambda: {**mapping, "expires_at": 1},
    lambda: {"secret": mapping["aws_secret_access_key"]},
    lambda: {"token": mapping["aws_session_token"]},
    lambda: {"sas_token": mapping["aws_session_token"]},
    lambda: mapping["aws_session_token"],
    lambda: [mapping],
    mapping,
):
    attempt(lambda: use("s3://tables/t", place, provider))
attempt(lambda: print(DeltaTable("s3://tables/t", storage_options=place, credential_provider=right).count(), "rows"))
kept = DeltaTable("s3://tables/t", storage_options=place, credential_provider=fails_later)
time.sleep(0.6)
attempt(kept.update_incremental)
# Profiles have the same secrets. The program of one profile prints them and fails, and another prints half of them.
profiles, answer = os.path.join(work, "profiles"), os.path.join(work, "answer")
keys = "\n".join(f"{name} = {value}" for name, value in mapping.items())
with open(answer, "w") as file:
    json.dump({"Version": 1, "SecretAccessKey": mapping[names[1]], "SessionToken": mapping[names[2]]}, file)
with open(profiles, "w") as file:
    file.write(f"[right]\n{keys}\n[wrong]\n{keys}x\n[half]\ncredential_process = cat {answer}\n")
    file.write(f"[failing]\ncredential_process = cat {answer}; exit 1\n")
broken = os.path.join(work, "broken")
with open(broken, "w") as file:
    file.write(f"[right]\n{keys}\n{mapping[names[1]]}\n")
for file, name in (
    (profiles, "right"), (profiles, "wrong"), (profiles, "half"), (profiles, "failing"), (broken, "right"),
):
    os.environ["AWS_SHARED_CREDENTIALS_FILE"] = file
    print("profile", name)
    attempt(lambda: use("s3://tables/t", {**place, "aws_profile": name}))
# The environment that a child process would see.
print(subprocess.run(["env"], capture_output=True, text=True).stdout)
"""


def test_no_output_contains_a_secret(s3: S3Server, tmp_path: Path) -> None:
    s3.set(secret_key=SECRETS["aws_secret_access_key"], session_token=SECRETS["aws_session_token"])
    options = {**s3.options(), **SECRETS}
    s3.faults(rule(error("SlowDown"), when={"every": 7}), rule("close_after", "put", when={"every": 5}))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path],
        input=json.dumps(options) + "\n",
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
    )
    seen = done.stdout + done.stderr
    assert done.returncode == 0, seen
    # The session has had successes and failures, and has logged requests.
    assert "num_rows" in seen or "pyarrow.Table" in seen, seen
    assert "SignatureDoesNotMatch" in seen
    for words in (
        " rows\n",
        "returned a mapping without credentials",
        "ValueError: not …",
        "cannot be pickled",
        "exit status: 1",
    ):
        assert words in seen, words
    s3.faults()
    stored = "".join(s3.get("tables", key).decode("latin-1") for key in s3.keys("tables"))
    for secret in SECRETS.values():
        for form in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode(), secret[7:]):
            assert form not in seen
            assert form not in stored
