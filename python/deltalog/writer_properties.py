"""Settings for how data files are encoded, under the same names as in `deltalake`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from deltalog.arguments import whole_argument
from deltalog.checked import checks_arguments, is_text
from deltalog.errors import wrong_argument

__all__ = ["BloomFilterProperties", "ColumnProperties", "WriterProperties", "file_format_argument"]


@checks_arguments
@dataclass(frozen=True)
class BloomFilterProperties:
    """A Bloom filter of a column, which lets readers skip row groups for `=` and `IN`.

    Columns of booleans and of floating-point numbers cannot have filters. The table property
    `deltalog.bloomFilterColumns` requests filters from all writers.
    """

    set_bloom_filter_enabled: bool | None
    """Whether the column gets a filter. By default, the table's property decides."""
    fpp: float | None = None
    """The rate of false positives, between 0 and 1."""
    ndv: int | None = None
    """The expected number of distinct values in a row group."""

    def __post_init__(self) -> None:
        if self.fpp is not None and not (_is_number(self.fpp) and 0 < self.fpp < 1):
            raise wrong_argument("fpp", self.fpp, "a number between 0 and 1, or None")
        if self.ndv is not None:
            whole_argument(self.ndv, "ndv", "a whole number from 1, or None", 1)


@checks_arguments
@dataclass(frozen=True)
class ColumnProperties:
    """How a column is encoded."""

    dictionary_enabled: bool | None = None
    """Whether values are dictionary-encoded. By default, they are, as long as this saves space."""
    statistics_enabled: Literal["NONE", "CHUNK", "PAGE"] | None = None
    """The statistics in the file. A column with bounds in the log always has at least statistics for column chunks."""
    bloom_filter_properties: BloomFilterProperties | None = None
    encoding: (
        Literal[
            "PLAIN",
            "RLE",
            "DELTA_BINARY_PACKED",
            "DELTA_LENGTH_BYTE_ARRAY",
            "DELTA_BYTE_ARRAY",
            "BYTE_STREAM_SPLIT",
        ]
        | None
    ) = None
    """The encoding of values that are not dictionary-encoded. Encodings other than `PLAIN` are only possible for some
    types.
    """

    def __post_init__(self) -> None:
        bloom = self.bloom_filter_properties
        if bloom is not None and not isinstance(bloom, BloomFilterProperties):
            raise wrong_argument("bloom_filter_properties", bloom, "a BloomFilterProperties, or None")


@checks_arguments
@dataclass(frozen=True)
class WriterProperties:
    """How the files of a write or a statement are encoded.

    The codec for all writers of a table is set by its property `delta.parquet.compression.codec`; without the property
    it is Snappy.
    """

    data_page_size_limit: int | None = None
    """The maximum size of a page in bytes, before compression."""
    dictionary_page_size_limit: int | None = None
    """The maximum size of a dictionary in bytes."""
    data_page_row_count_limit: int | None = None
    """The maximum number of rows in a page."""
    write_batch_size: int | None = None
    """The number of values between two checks of the page limits."""
    max_row_group_size: int | None = None
    """The maximum number of rows in a row group; by default 1,048,576, or fewer if they take 128 MiB."""
    compression: (
        Literal["UNCOMPRESSED", "NONE", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"] | None
    ) = None
    """The compression codec."""
    compression_level: int | None = None
    """The compression level of `GZIP` (0 to 9), `BROTLI` (0 to 11) or `ZSTD` (1 to 22)."""
    statistics_truncate_length: int | None = None
    """The length to which the bounds of strings are truncated in the file."""
    default_column_properties: ColumnProperties | None = None
    """How columns are encoded by default."""
    column_properties: Mapping[str, ColumnProperties] | None = None
    """How single columns are encoded, by their names; a field of a struct is given as `struct.field`."""

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            number = getattr(self, name)
            if number is not None:
                whole_argument(number, name, "a whole number from 1, or None", 1)
        level = self.compression_level
        if level is not None:
            whole_argument(level, "compression_level", "a whole number, such as 3, or None")
            codec = (self.compression or "").upper()
            least, most = _LEVELS.get(codec, (level, level))
            if not least <= level <= most:
                raise wrong_argument(
                    "compression_level", level, f"a level of {codec}, from {least} to {most}"
                )
        default, columns = self.default_column_properties, self.column_properties
        if default is not None and not isinstance(default, ColumnProperties):
            raise wrong_argument("default_column_properties", default, "a ColumnProperties, or None")
        if columns is None:
            return
        if not isinstance(columns, Mapping):
            raise wrong_argument("column_properties", columns, "a dictionary of names to ColumnProperties")
        for name, own in columns.items():
            if not is_text(name) or not isinstance(own, ColumnProperties):
                raise wrong_argument(f"column_properties[{name!r}]", own, "a ColumnProperties")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_LEVELS = {"GZIP": (0, 9), "BROTLI": (0, 11), "ZSTD": (1, 22)}

# The names of these settings in the core.
_NUMBERS = {
    "data_page_size_limit": "dataPageBytes",
    "dictionary_page_size_limit": "dictionaryPageBytes",
    "data_page_row_count_limit": "dataPageRows",
    "write_batch_size": "batchRows",
    "max_row_group_size": "rowGroupRows",
    "statistics_truncate_length": "statisticsLength",
}


def file_format_argument(writer_properties: WriterProperties | None) -> str | None:
    """Returns `writer_properties` as the compiled module expects them."""
    if writer_properties is None:
        return None
    if not isinstance(writer_properties, WriterProperties):
        raise wrong_argument("writer_properties", writer_properties, "a WriterProperties, or None")
    numbers = {**_NUMBERS, "compression_level": "compressionLevel"}
    given = {
        **{core: _whole(getattr(writer_properties, name)) for name, core in numbers.items()},
        "compression": writer_properties.compression,
        "defaultColumn": _column(writer_properties.default_column_properties),
        "columns": {name: _column(own) for name, own in (writer_properties.column_properties or {}).items()},
    }
    return json.dumps({name: value for name, value in given.items() if value is not None})


def _whole(number: int | None) -> int | None:
    """Checks a number, which may be numpy's, and returns it as a Python number."""
    return None if number is None else int(number)


def _column(properties: ColumnProperties | None) -> dict[str, object]:
    if properties is None:
        return {}
    bloom = properties.bloom_filter_properties or BloomFilterProperties(None)
    given = {
        "dictionary": properties.dictionary_enabled,
        "statistics": properties.statistics_enabled,
        "encoding": properties.encoding,
        "bloomFilter": bloom.set_bloom_filter_enabled,
        "bloomFilterFpp": bloom.fpp,
        "bloomFilterNdv": _whole(bloom.ndv),
    }
    return {name: value for name, value in given.items() if value is not None}
