"""The tests that `SECURITY.md` names exist, its limits are those in the code, and the licenses of crates are
packaged.
"""

import re
from importlib import resources
from pathlib import Path

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


def test_the_tests_that_it_names_exist(root: Path) -> None:
    named = re.findall(r"`((?:tests|crates)/[^`]+)`", (root / "SECURITY.md").read_text())
    assert len(named) > 10
    assert [name for name in named if not (root / name).exists()] == []


def test_its_limits_agree_with_the_core(root: Path) -> None:
    """Every constant of the core's limits is in the table of the page, and every value in the table belongs to a
    constant.
    """
    code = (root / "crates/deltalog/src/limits.rs").read_text()
    limits: dict[str, int] = {}
    for name, value in re.findall(r"const (\w+): \w+ = ([^;]+);", code):
        assert re.fullmatch(r"[\w\s+*<()]+", value), value
        limits[name] = eval(value, {}, limits)  # noqa: S307
    table = (root / "SECURITY.md").read_text().partition("## Limits")[2].partition("\n## ")[0]
    written = []
    for row in re.findall(r"^\| [^|]+ \| ([\d][^|]*) \|$", table, re.MULTILINE):
        for value in row.split(" and "):
            number, _, unit = value.strip().partition(" ")
            written.append(int(number.replace(",", "")) * UNITS.get(unit, 1))
    assert sorted(written) == sorted(limits.values())


def test_the_package_has_the_licenses_of_its_crates() -> None:
    text = (resources.files("deltalog") / "THIRD_PARTY_LICENSES.txt").read_text()
    for crate in ("arrow-array", "object_store", "pyo3", "tokio", "zstd-sys"):
        assert re.search(rf"^{crate} \d", text, re.MULTILINE), crate
    assert "Apache License" in text
    assert "Permission is hereby granted" in text
