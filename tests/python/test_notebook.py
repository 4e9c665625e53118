"""The HTML that notebooks show for tables. A table may come from an untrusted source."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from deltalog import (
    CloneResult,
    DeltaTable,
    StreamBacklog,
    UnavailableError,
    VacuumResult,
    plan_conversion,
    write_deltalake,
)
from tests.python.place import commit_file

EVIL = '<img src=x onerror="alert(1)">&amp;\u202e\x1b[31m'


class Parsed(HTMLParser):
    """Collects the elements of a page and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[object] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(table: DeltaTable) -> Parsed:
    html = table._repr_html_()
    assert html is not None
    return Parsed(html)


def test_a_table(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"city": ["Oslo"], "km": [1.5]}), partition_by="city", name="trips")
    table = DeltaTable(tmp_path)
    table.delete("km > 1")
    texts = shown(table).texts
    assert texts[0] == repr(table)
    for text in ("trips", "partitioned by", "city", "km", "double", "DELETE", "WRITE"):
        assert text in texts, text


def test_names_in_untrusted_tables_are_shown_as_text(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    schema = pa.schema([(EVIL, pa.struct([(EVIL, pa.int64())]))])
    table = DeltaTable.create(tmp_path, schema, name=EVIL, description=EVIL, configuration=properties)
    log = commit_file(tmp_path, 0)
    log.write_text(log.read_text().replace("CREATE TABLE", "<script>alert(2)</script>"))
    parsed = shown(DeltaTable(tmp_path))
    assert parsed.tags == {"div", "strong", "table", "tr", "td", "th"}
    assert parsed.attributes == []
    text = "".join(parsed.texts)
    assert text.count("<img src=x") >= 4
    assert "<script>" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert table.metadata().name == EVIL


def test_very_many_columns(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({f"c{number}": [1] for number in range(300)}))
    parsed = shown(DeltaTable(tmp_path))
    assert "… and 250 more" in parsed.texts
    assert "c49" in parsed.texts
    assert "c50" not in parsed.texts


def test_unreadable_tables_are_shown_with_their_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, pa.table({"i": [1]}))

    def fail(*_: object) -> list[object]:
        raise UnavailableError("the store <b>failed</b>")

    monkeypatch.setattr(DeltaTable, "history", fail)
    parsed = shown(DeltaTable(tmp_path))
    assert parsed.texts[-1] == "the store <b>failed</b>"
    assert "b" not in parsed.tags


def test_a_table_that_was_not_opened() -> None:
    assert DeltaTable.__new__(DeltaTable)._repr_html_() is None


def test_results_and_plans(tmp_path: Path) -> None:
    write_deltalake(
        tmp_path / "t", pa.table({"i": [1], EVIL: [2]}), configuration={"delta.columnMapping.mode": "name"}
    )
    table = DeltaTable(tmp_path / "t")
    table.delete("i = 1")
    parquet = tmp_path / "parquet"
    parquet.mkdir()
    pyarrow.parquet.write_table(pa.table({"i": [1], "<b>": ["x"]}), parquet / "a.parquet")
    plan = table.vacuum_plan(0, enforce_retention_duration=False)
    results: list[tuple[Any, tuple[str, ...]]] = [
        (plan, ("VacuumPlan", "num files", "1", "cutoff")),
        (plan.delete(), ("VacuumResult", "num files", "1", "version", "3")),
        (table.clone(tmp_path / "clone"), ("CloneResult", "allowed roots")),
        (plan_conversion(parquet), ("ConversionPlan", "columns", "i: long, <b>: string")),
        (table.verify(), ("Verification", "ok", "True")),
        (table.schema(), ("Schema", "i", "long")),
        (table.metadata(), ("Metadata", "configuration")),
        (table.protocol(), ("Protocol", "min reader version")),
        (StreamBacklog(3, 2, 1), ("StreamBacklog", "versions", "3")),
        (VacuumResult(10**6, 0, 0, 1), ("1,000,000",)),
        (CloneResult({"a": 1000}, None, [str(number) for number in range(60)]), ("a: 1,000", "")),
    ]
    for shown_object, texts in results:
        parsed = Parsed(shown_object._repr_html_())
        assert parsed.tags == {"div", "strong", "table", "tr", "td"}, shown_object
        assert set(texts) <= {*parsed.texts, ""}, (parsed.texts, texts)
        assert parsed.attributes == []
    assert "… and 10 more" in CloneResult({}, None, ["x"] * 60)._repr_html_()
    assert "\x1b" not in table.schema()._repr_html_()
