"""`append`, `export`: read rows from files, and write rows to files."""

import shutil
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from deltalog.cli.failures import UsageError
from deltalog.cli.files import FORMATS, format_of, opened, written
from deltalog.cli.output import Output, first_rows
from deltalog.cli.verb import (
    Arguments,
    Parser,
    Verb,
    add_limit,
    add_table,
    add_version,
    columns_of,
    open_table,
)
from deltalog.words import counted

if TYPE_CHECKING:
    from deltalog._internal import ArrowBatch, Decoder
    from deltalog.table import DeltaTable

__all__ = ["VERBS"]

_PIECE = 1 << 20
_COMPUTED = ("delta.generationExpression", "delta.identity.start", "CURRENT_DEFAULT")


def _add_format(parser: Parser) -> None:
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="the format; by default it is determined by the ending of the file's name",
    )
    parser.add_argument(
        "--delimiter",
        metavar="CHARACTER",
        default=",",
        help="for CSV: the character between values; by default a comma",
    )
    parser.add_argument(
        "--null",
        metavar="TEXT",
        default="",
        help="for CSV: the unquoted text that represents NULL; by default the empty text",
    )
    parser.add_argument(
        "--no-header", action="store_true", help="for CSV: the file has no line with the names of the columns"
    )


def _define_append(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="-", help="the file to read; by default standard input"
    )
    _add_format(parser)
    parser.add_argument(
        "-c",
        "--columns",
        metavar="NAMES",
        action="append",
        help="with --no-header: the columns of the file, in their order; by default the columns of the table",
    )
    parser.add_argument("--message", metavar="TEXT", help="a text to record with the commit, as userMetadata")


class _Rows:
    """An iterator over the batches of a file. It counts the rows, and stores the error if reading fails."""

    def __init__(self, name: str, batches: "Iterator[ArrowBatch]") -> None:
        self.name = "standard input" if name == "-" else name
        self.count = 0
        self.failure: BaseException | None = None
        self._batches = batches

    def __iter__(self) -> "Iterator[ArrowBatch]":
        from deltalog.errors import DeltaError

        try:
            for batch in self._batches:
                self.count += batch.num_rows
                yield batch
        except DeltaError as error:
            error.args = (f"{self.name}: {error}",)
            self.failure = error
            raise
        except (OSError, EOFError, ValueError) as error:  # `gzip` may raise any of these exceptions.
            self.failure = UsageError(f"{self.name} cannot be read: {error}")
            raise


def _decoded(decoder: "Decoder", file: IO[bytes]) -> "Iterator[ArrowBatch]":
    while piece := file.read(_PIECE):
        yield from decoder.feed(piece)
    yield from decoder.finish()


def _append(arguments: Arguments, out: Output) -> None:
    from deltalog.writer import write_deltalake

    form = format_of(arguments.file, arguments.format)
    if (arguments.columns or arguments.no_header) and form != "csv":
        raise UsageError("--columns and --no-header can only be used with CSV")
    if arguments.columns and not arguments.no_header:
        raise UsageError(
            "--columns can only be used with --no-header: otherwise the first line names the columns"
        )
    table = open_table(arguments)
    with opened(arguments.file) as file:
        rows = _Rows(
            arguments.file,
            _parquet(arguments.file, file) if form == "parquet" else _of_text(form, table, arguments, file),
        )
        try:
            version = write_deltalake(table, iter(rows), mode="append", user_metadata=arguments.message)
        except Exception:
            if rows.failure is not None:
                raise rows.failure from None
            raise
    out.result(
        {"version": version, "rows": rows.count},
        [("version", str(version)), ("appended", counted(rows.count, "row"))],
    )


def _of_text(form: str, table: "DeltaTable", arguments: Arguments, file: IO[bytes]) -> "Iterator[ArrowBatch]":
    from deltalog._internal import Decoder

    schema = table.schema()
    computed = [field.name for field in schema.fields if any(key in field.metadata for key in _COMPUTED)]
    if form == "arrow":
        decoder = Decoder.arrow()
    elif form == "jsonl":
        decoder = Decoder.json(schema, computed)
    else:
        columns = columns_of(arguments.columns)
        if columns is None and arguments.no_header:
            columns = [name for name in schema.names if name not in computed]
        decoder = Decoder.csv(schema, columns, arguments.delimiter, arguments.null)
    return _decoded(decoder, file)


def _parquet(name: str, file: IO[bytes]) -> "Iterator[ArrowBatch]":
    """Reads a Parquet file. The reader must begin at the end of the file, so a pipe is copied to a temporary file."""
    from tempfile import NamedTemporaryFile

    from deltalog._internal import read_parquet

    if name != "-" and not name.endswith(".gz"):
        yield from read_parquet(name)
        return
    with NamedTemporaryFile(prefix="deltalog-append-") as copy:
        shutil.copyfileobj(file, copy, _PIECE)
        copy.flush()
        yield from read_parquet(copy.name)


def _define_export(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="-", help="the file to write; by default standard output"
    )
    _add_format(parser)
    parser.add_argument("--where", metavar="SQL", help="write only rows for which this condition is true")
    parser.add_argument(
        "-c", "--columns", metavar="NAMES", action="append", help="the columns to write, such as city,km"
    )
    add_version(parser)
    add_limit(parser, None, "write at most N rows; by default all")
    parser.add_argument("--replace", action="store_true", help="if the file exists, replace it")


_FORMS = {"jsonl": "json"}


def _export(arguments: Arguments, out: Output) -> None:
    from deltalog._internal import Encoder

    form = format_of(arguments.file, arguments.format)
    if arguments.no_header and form != "csv":
        raise UsageError("--no-header can only be used with CSV")
    if arguments.file == "-" and form in ("parquet", "arrow"):
        out.ensure_no_terminal(f"--format {form}")
    stream = open_table(arguments).to_arrow(columns_of(arguments.columns), arguments.where)
    encoder = Encoder(
        _FORMS.get(form, form),  # type: ignore[arg-type]
        stream,
        arguments.delimiter,
        arguments.null,
        not arguments.no_header,
    )
    rows = 0
    with written(arguments.file, replaces=arguments.replace) as file:
        for batch in first_rows(stream, arguments.limit):
            file.write(encoder.encode(batch))
            rows += batch.num_rows
        file.write(encoder.finish())
    if arguments.file != "-":
        out.result({"rows": rows}, [("exported", counted(rows, "row"))])


VERBS: dict[str, Verb] = {
    "append": Verb(
        _define_append,
        _append,
        (
            "deltalog export trips new.csv --where \"city = 'Rome'\"",
            "deltalog append trips new.csv",
            "deltalog show trips --json | deltalog append trips --format jsonl",
        ),
        "Values are never rounded or cut off. If the table cannot store a value exactly, the command fails with the "
        "number of its line, and commits nothing: for example for 1.5 in a column of whole numbers, for a decimal with "
        "too many digits, or for a name that is not a column. Columns that the file does not have are NULL, or get the "
        "value that the table computes for them.\n\n"
        "In CSV, the first line names the columns, values in quotes are never NULL, bytes are hexadecimal, and times "
        "without a zone are in UTC. JSON lines have one object per line. Files whose names end with .gz are "
        "decompressed.",
    ),
    "export": Verb(
        _define_export,
        _export,
        (
            "deltalog export trips trips.parquet",
            'deltalog export trips trips.csv.gz --columns city,km --where "km > 4"',
            "deltalog export trips --format jsonl -n 2",
        ),
        "`deltalog append` reads exactly the same values from the file. The file appears only when it is complete.",
    ),
}
