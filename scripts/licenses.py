"""Collects the licenses of the crates in a wheel: `python scripts/licenses.py FILE` writes their texts.

`--crate` names the crate of the wheel's binary, with `--manifest-path` if it is in another Cargo workspace.

`--platform aarch64-apple-darwin` collects the licenses for this Rust platform instead of this machine's. It can be
repeated.

`deny.toml` lists the licenses that are accepted. The tool `cargo about` also collects license texts, but compiling it
takes longer than compiling deltalog itself.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from license_expression import LicenseSymbol, LicenseWithExceptionSymbol, Licensing, get_spdx_licensing

ROOT = Path(__file__).parent.parent

# The licenses of `deny.toml`, each with words by which its text is recognized.
# If a crate offers a choice of licenses, the first one in this list is taken.
ACCEPTED = {
    "Apache-2.0": "Apache License",
    "MIT": "Permission is hereby granted, free of charge",
    "BSD-3-Clause": "Redistribution and use in source and binary forms",
    "BSD-2-Clause": "Redistribution and use in source and binary forms",
    "ISC": "Permission to use, copy, modify, and/or distribute this software",
    "Zlib": "This software is provided 'as-is'",
    "Unicode-3.0": "UNICODE LICENSE V3",
    "Apache-2.0 WITH LLVM-exception": "Apache License",
    "CC0-1.0": "CC0 1.0 Universal",
    "CDLA-Permissive-2.0": "Community Data License Agreement",
}
LICENSE_FILES = re.compile(r"(?i)(licen[cs]e|copying)")

Package = dict[str, Any]


def metadata(manifest: Path, platform: str) -> dict[str, Any]:
    """Returns the packages and their dependencies."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", platform]
    command += ["--manifest-path", str(manifest)]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    )
    return found


def host() -> str:
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return next(line.removeprefix("host: ") for line in version.splitlines() if line.startswith("host: "))


@cache
def licensing() -> Licensing:
    return get_spdx_licensing()


@cache
def chosen(expression: str) -> list[str]:
    """Returns the licenses that an SPDX expression requires; if there is a choice, the first accepted one."""
    parsed = licensing().parse(expression.replace("/", " OR "), validate=True)

    def choose(term: Any) -> list[str] | None:
        if isinstance(term, LicenseSymbol | LicenseWithExceptionSymbol):
            name = term.render("{symbol.key}")
            return [name] if name in ACCEPTED else None
        choices = [choose(part) for part in term.args]
        if type(term).__name__ == "AND":
            return None if None in choices else sorted({name for names in choices for name in names or []})
        possible = [names for names in choices if names]
        return min(possible, key=lambda names: [list(ACCEPTED).index(name) for name in names], default=None)

    licenses = choose(parsed)
    if licenses is None:
        raise ValueError(f"{expression} is not accepted")
    return licenses


def linked(graph: dict[str, Any], crate: str) -> list[Package]:
    """Returns the packages whose code is in the binary of a crate, sorted by name."""
    packages = {package["id"]: package for package in graph["packages"]}
    dependencies = {node["id"]: node["deps"] for node in graph["resolve"]["nodes"]}
    todo = [identity for identity, package in packages.items() if package["name"] == crate]
    found: set[str] = set()
    while todo:
        identity = todo.pop()
        if identity in found or any(
            "proc-macro" in target["kind"] for target in packages[identity]["targets"]
        ):
            continue
        found.add(identity)
        for dependency in dependencies[identity]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    of_others = [packages[identity] for identity in found if packages[identity]["source"] is not None]
    return sorted(of_others, key=lambda package: (package["name"], package["version"]))


def files(package: Package, words: str) -> list[str]:
    """Returns the files in a package's directory that contain a license's words."""
    directory = Path(package["manifest_path"]).parent
    texts = [path.read_text(errors="replace") for path in sorted(directory.iterdir()) if wanted(path)]
    return [text.strip() for text in texts if words in " ".join(text.split())]


def wanted(path: Path) -> bool:
    return path.is_file() and LICENSE_FILES.match(path.name) is not None


def notices(package: Package) -> list[str]:
    directory = Path(package["manifest_path"]).parent
    return [path.read_text(errors="replace").strip() for path in directory.glob("NOTICE*") if path.is_file()]


def without_copyright(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.strip().lower().startswith("copyright"))


def collected(packages: list[Package], user: str = "deltalog") -> str:
    """Returns the texts of the licenses, each once, with the packages to which they apply."""
    users: dict[tuple[str, str], list[str]] = defaultdict(list)
    missing: list[tuple[Package, str]] = []
    for package in packages:
        for license_ in chosen(package["license"]):
            name = f"{package['name']} {package['version']}"
            if license_ == "Apache-2.0":
                users[license_, (ROOT / "LICENSE").read_text().strip()].append(name)
            elif texts := files(package, ACCEPTED[license_]):
                users[license_, texts[0]].append(name)
            else:
                missing.append((package, license_))
        for text in notices(package):
            users["notice", text].append(f"{package['name']} {package['version']}")
    for package, license_ in missing:
        # If a package names a license but does not contain its text, the text comes from another package.
        # The authors' names in that text are replaced.
        model = next(text for known, text in users if known == license_)
        authors = ", ".join(package["authors"]) or f"the authors of {package['name']}"
        text = f"Copyright (c) {authors}\n{without_copyright(model)}"
        users[license_, text].append(f"{package['name']} {package['version']}")
    parts = [
        f"{user} contains code of these Rust crates. Each is used under the license that follows its name."
    ]
    for (license_, text), names in sorted(users.items(), key=lambda entry: (entry[0][0], entry[1])):
        heading = "\n".join(names)
        parts.append(f"{'=' * 80}\n{heading}\n\n{license_}\n{'-' * 80}\n{text}")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Collect the licenses of Rust crates.")
    parser.add_argument("file", type=Path, help="file for the texts; replaced")
    parser.add_argument(
        "--platform", action="append", help="a platform of the wheel; this machine's by default"
    )
    parser.add_argument("--crate", default="deltalog-python", help="the crate of the wheel's binary")
    parser.add_argument("--manifest-path", type=Path, default=ROOT / "Cargo.toml", help="its Cargo.toml")
    options = parser.parse_args()
    packages = {
        package["id"]: package
        for platform in options.platform or [host()]
        for package in linked(metadata(options.manifest_path.resolve(), platform), options.crate)
    }
    by_name = sorted(packages.values(), key=lambda package: (package["name"], package["version"]))
    options.file.write_text(collected(by_name, options.crate.removesuffix("-python")))


if __name__ == "__main__":
    main()
