"""Writes and verifies SHA256SUMS, and signs it with an SSH key.

Users can verify both files with common tools: `ssh-keygen`, and `sha256sum` or `shasum`. The public keys are in the
file `SIGNERS` of the repository. An environment variable names the file of the private key.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

from scripts.release.errors import RefusedError

NAME = "SHA256SUMS"
SIGNATURE = f"{NAME}.sig"
SIGNERS = "docs/release-signers"
SIGNER = "releases@deltalog"
NAMESPACE = "deltalog"
KEY = "DELTALOG_SIGNING_KEY"


def digest(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as content:
        while part := content.read(1 << 20):
            found.update(part)
    return found.hexdigest()


def write(directory: Path) -> Path:
    """Lists the digests of all files in a directory, as `sha256sum` does."""
    files = sorted(file for file in directory.iterdir() if file.name not in (NAME, SIGNATURE))
    (directory / NAME).write_text("".join(f"{digest(file)}  {file.name}\n" for file in files), "utf-8")
    return directory / NAME


def verify(directory: Path) -> list[str]:
    """Compares the files of a directory with SHA256SUMS, and returns the problems."""
    wrong, listed = [], {}
    for line in (directory / NAME).read_text("utf-8").splitlines():
        found = re.fullmatch(r"([0-9a-f]{64})  ([^/]+)", line)
        if found is None:
            wrong.append(f"{NAME} has a line that is not a digest: {line!r}")
        else:
            listed[found[2]] = found[1]
    present = {file.name: file for file in directory.iterdir() if file.name not in (NAME, SIGNATURE)}
    wrong += [f"{name} is missing" for name in sorted(listed.keys() - present.keys())]
    wrong += [f"{name} is not in {NAME}" for name in sorted(present.keys() - listed.keys())]
    wrong += [
        f"{name} has other bytes than {NAME} says"
        for name in sorted(listed.keys() & present.keys())
        if digest(present[name]) != listed[name]
    ]
    return wrong


def signing_key() -> Path:
    """Returns the file of the private key, or of the public key if an SSH agent holds the private one."""
    value = os.environ.get(KEY, "")
    if not value:
        raise RefusedError(
            f"{KEY} is not set: set it to the file of an SSH key that is in {SIGNERS}, "
            "or pass --unsigned if the files will not be published"
        )
    if not Path(value).is_file():
        raise RefusedError(f"{KEY} is {value}, and there is no such file")
    return Path(value).resolve()


def sign(sums: Path, key: Path, signers: Path) -> None:
    """Signs a file, and checks the signature as a user would."""
    sums.with_name(f"{sums.name}.sig").unlink(missing_ok=True)
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(sums)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RefusedError(f"ssh-keygen cannot sign with {key}: {ran.stderr.strip()}")
    if problem := signature_problem(sums, signers):
        raise RefusedError(
            f"{key} is not a key of {signers.name}, add it there and commit that first: {problem}"
        )


def signature_problem(sums: Path, signers: Path) -> str | None:
    """Returns why a file's signature is not valid, or None."""
    signature = sums.with_name(f"{sums.name}.sig")
    if not signature.is_file():
        return f"there is no {signature.name}"
    command = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-f",
        str(signers),
        "-I",
        SIGNER,
        "-n",
        NAMESPACE,
        "-s",
        str(signature),
    ]
    with sums.open("rb") as content:
        ran = subprocess.run(command, stdin=content, capture_output=True, text=True, check=False)
    return None if ran.returncode == 0 else (ran.stderr.strip() or ran.stdout.strip())


def check_key(key: Path, signers: Path) -> None:
    """Tests the key by signing a sample. This runs before the builds, so that a wrong key is noticed early."""
    with tempfile.TemporaryDirectory() as directory:
        probe = Path(directory, NAME)
        probe.write_text("")
        sign(probe, key, signers)
