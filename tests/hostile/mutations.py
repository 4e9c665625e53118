"""Changes a table's files as an attacker could, to reach other files or to crash the process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.hostile.files import change_footer, change_vector, replace_data
from tests.hostile.place import Place
from tests.hostile.tables import Files

NUMBERS = (0, 1, -1, 2**31 - 1, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64, 1e308, 0.5)
TEXTS = (
    "",
    ".",
    "\0",
    "\n",
    "null",
    "NaN",
    "1e400",
    "9" * 400,
    "\ud800",
    "%2e%2e/",
    "a" * 70_000,
    "\u202e",
    "'; --",
)
EXPRESSIONS = (
    "n + 1",
    "nullif(" * 60 + "n" + ", 0)" * 60,
    "(" * 5_000 + "n" + ")" * 5_000,
    "replace(" * 40 + "s" + ", 'a', 'aaaaaaaa')" * 40,
    "repeat(s, 2147483647)",
    "n / 0 > 1",
    "(SELECT max(n) FROM other)",
    "reflect('java.lang.Runtime', 'getRuntime')",
    "${env:CANARY}",
    "s RLIKE '" + "(a*)*" * 500 + "'",
    "CASE " + "WHEN n = 1 THEN n " * 3_000 + "END",
    "CAST(s AS INT) > 0",
    "",
)

Mutation = Callable[[Random, Place], None]


def write(place: Place, files: Files) -> None:
    for name, content in files.items():
        file = place.table / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def mutate(random: Random, place: Place) -> list[str]:
    """Makes one to three changes, and returns their names."""
    chosen = random.choices(MUTATIONS, weights=WEIGHTS, k=random.randint(1, 3))
    for mutation in chosen:
        mutation(random, place)
    return [mutation.__name__ for mutation in chosen]


def change_actions(random: Random, place: Place) -> None:
    """Replaces, removes or duplicates values in a commit."""
    file, lines = _commit(random, place)
    if not lines:
        return
    at = random.randrange(len(lines))
    kind = random.randrange(6)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[at])
    else:
        action = _json(lines[at])
        if action is None:
            return
        holder, key = random.choice(list(_leaves(action)) or [(action, next(iter(action), ""))])
        holder[key] = _value(random, place)
        lines[at] = json.dumps(action)
    file.write_text("\n".join(lines), errors="surrogatepass")


def lead_outside(random: Random, place: Place) -> None:
    """Adds an action with a path that leads out of the table."""
    file, lines = _commit(random, place)
    path = random.choice(place.paths_outside(random))
    vector = {
        "storageType": random.choice("pu"),
        "pathOrInlineDv": path,
        "offset": 1,
        "sizeInBytes": 34,
        "cardinality": 1,
    }
    common: dict[str, Any] = {
        "path": path,
        "partitionValues": {},
        "size": place.canary_size(),
        "dataChange": True,
    }
    actions = [
        {"add": {**common, "modificationTime": 1}},
        {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}},
        {"cdc": {**common, "dataChange": False}},
        {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}},
    ]
    known = [_json(line) for line in lines]
    adds = [action["add"] for action in known if action and isinstance(action.get("add"), dict)]
    if adds:
        actions.append({"add": {**random.choice(adds), "deletionVector": vector}})
    lines.append(json.dumps(random.choice(actions)))
    file.write_text("\n".join(lines), errors="surrogatepass")


def change_rules(random: Random, place: Place) -> None:
    """Puts an expression into the metadata, as a constraint, a default, a generated column or an invariant."""

    def change(metadata: dict[str, Any]) -> None:
        sql = random.choice(EXPRESSIONS)
        schema = _json(metadata.get("schemaString", ""))
        if random.randrange(2) or not schema or not schema.get("fields"):
            configuration = metadata.get("configuration")
            # An earlier mutation may have replaced the value with something else.
            configuration = configuration if isinstance(configuration, dict) else {}
            metadata["configuration"] = {**configuration, "delta.constraints.c": sql}
            return
        rule = random.choice(("CURRENT_DEFAULT", "delta.generationExpression", "delta.invariants"))
        value = json.dumps({"expression": {"expression": sql}}) if rule == "delta.invariants" else sql
        field = random.choice(schema["fields"])
        if isinstance(field, dict) and isinstance(field.get("metadata"), dict):
            field["metadata"][rule] = value
        metadata["schemaString"] = json.dumps(schema)

    _change_metadata(random, place, change)


def change_schema(random: Random, place: Place) -> None:
    """Changes the schema: nests it deeply, gives it very many columns, or repeats a name."""

    def change(metadata: dict[str, Any]) -> None:
        kind: Any = "long"
        for _ in range(random.choice((3, 99, 101, 3_000))):
            kind = {"type": "array", "elementType": kind, "containsNull": True}
        fields = [
            {
                "name": "n",
                "type": random.choice((kind, "decimal(99,3)", "void", "variant")),
                "nullable": True,
            },
            *(
                {"name": f"c{number}", "type": "long", "nullable": True}
                for number in range(random.choice((0, 2_000)))
            ),
        ]
        if random.randrange(3) == 0:
            fields.append({"name": "N", "type": "long", "nullable": False})
        for field in fields:
            field["metadata"] = {}
        try:
            metadata["schemaString"] = json.dumps({"type": "struct", "fields": fields})
        except RecursionError:
            metadata["schemaString"] = '{"type":' * 20_000

    _change_metadata(random, place, change)


def damage(random: Random, place: Place) -> None:
    """Changes bytes of a file."""
    file = random.choice(_files(place))
    if not file.is_file() or file.is_symlink():
        return
    content = bytearray(file.read_bytes())
    for _ in range(random.randint(1, 4)):
        at = random.choice((random.randrange(len(content) + 1), max(0, len(content) - random.randint(1, 64))))
        kind = random.randrange(5)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            del content[at:]
        elif kind == 2:
            del content[at : at + random.randint(1, 200)]
        elif kind == 3:
            content[at : at + 4] = random.choice((0, 1, 2**31 - 1, 2**32 - 1)).to_bytes(4, "little")
        else:
            content[at:at] = content[at : at + 100] * random.randint(1, 5)
    file.write_bytes(content)


def link(random: Random, place: Place) -> None:
    """Replaces a file of the table with a pipe or with a link to a file outside, or adds a link that leads outside."""
    files = _files(place)
    target = random.choice((place.canary, place.outside))
    name = random.choice(
        [
            random.choice(files),
            *(place.table / name for name in ("link", "_change_data", "_symlink_format_manifest")),
        ]
    )
    if name.is_symlink() or name.is_file():
        name.unlink()
        if random.randrange(4) == 0:
            os.mkfifo(name)
            return
        target = place.canary
    elif name.exists():
        return
    name.symlink_to(target)
    file, lines = _commit(random, place)
    path = f"{name.relative_to(place.table)}/{place.canary.name}" if target == place.outside else name.name
    kind = random.choice(({"modificationTime": 1, "size": place.canary_size()}, {"deletionTimestamp": 1}))
    action = {"path": path, "partitionValues": {}, "dataChange": True, **kind}
    lines.append(json.dumps({"add" if "size" in kind else "remove": action}))
    if file.is_file() and not file.is_symlink():
        file.write_text("\n".join(lines), errors="surrogatepass")


def add_stray_files(random: Random, place: Place) -> None:
    """Adds files to the log that belong to other versions, or to none."""
    log = place.table / "_delta_log"
    version = random.choice((0, 2, 7, 10**9, 9 * 10**17, 10**20 - 1))
    name = random.choice(
        (
            f"{version:020}.json",
            f"{version:020}.crc",
            f"{version:020}.checkpoint.parquet",
            f"{version:020}.checkpoint.0000000001.0000000002.parquet",
            f"{version:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
            f"{version:020}.{version + 3:020}.compacted.json",
            "_last_checkpoint",
            ".tmp",
        )
    )
    content = random.choice((b"", b"{}", b"null", b'{"version":9223372036854775807,"size":1}', b"PAR1PAR1"))
    # An earlier mutation may have put a link or a pipe there.
    if not (log / name).is_symlink() and (not (log / name).exists() or (log / name).is_file()):
        (log / name).write_bytes(content)


MUTATIONS: tuple[Mutation, ...] = (
    change_actions,
    lead_outside,
    change_rules,
    change_schema,
    damage,
    link,
    add_stray_files,
    change_footer,
    replace_data,
    change_vector,
)
WEIGHTS = (4, 3, 2, 1, 3, 2, 1, 3, 3, 2)


def _files(place: Place) -> list[Path]:
    return sorted(path for path in place.table.rglob("*") if path.is_symlink() or not path.is_dir())


def _commit(random: Random, place: Place, *, first: bool = False) -> tuple[Path, list[str]]:
    """Returns a random commit, or the oldest one with `first`, and its lines. If earlier mutations have left no commit
    that is a regular file, it returns the path of version 0 without lines.
    """
    commits = sorted((place.table / "_delta_log").glob("*.json"))
    commits = [
        file
        for file in commits
        if file.is_file() and not file.is_symlink() and ".checkpoint." not in file.name
    ]
    if not commits:
        return place.table / "_delta_log" / f"{0:020}.json", []
    file = commits[0] if first else random.choice(commits)
    return file, file.read_text(errors="replace").splitlines()


def _change_metadata(random: Random, place: Place, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the table's metadata in its first commit."""
    file, lines = _commit(random, place, first=True)
    for at, line in enumerate(lines):
        action = _json(line)
        if action and isinstance(action.get("metaData"), dict):
            change(action["metaData"])
            lines[at] = json.dumps(action)
    file.write_text("\n".join(lines), errors="surrogatepass")


def _json(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _leaves(value: Any) -> list[tuple[Any, Any]]:
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        found += _leaves(item)
    return found


def _value(random: Random, place: Place) -> Any:
    kind = random.randrange(5)
    if kind == 0:
        return random.choice(NUMBERS)
    if kind == 1:
        return random.choice(place.paths_outside(random))
    if kind == 2:
        return random.choice((None, True, {}, [], [[[]]], {"a": {"b": 1}}))
    return random.choice((*TEXTS, *EXPRESSIONS))
