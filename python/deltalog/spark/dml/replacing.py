"""Overwrites with the options `replaceOn` and `replaceUsing`.

Like the statements INSERT … REPLACE ON and REPLACE USING, such an overwrite deletes the rows of the table that match a
row of the data, and inserts all rows of the data. It is a MERGE, in one commit (`ReplacingRows.java`).
"""

import json
from typing import Any

from deltalog._internal import table_exists
from deltalog.spark.dml.execute import execute
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location
from deltalog.spark.options import Options
from deltalog.spark.read.relation import opened, snapshot_relation
from deltalog.spark.write.evolution import schema_mode
from deltalog.spark.write.overwrite import OPTION
from deltalog.spark.write.settings import Settings


def replace(
    jvm: Jvm, session: Any, rows: Any, options: Options, location: Location, *, overwrites: bool
) -> bool:
    """Carries out an overwrite with these options. Returns false if the table does not exist: then the caller writes
    the rows in the usual way.
    """
    check(options, overwrites)
    if not table_exists(location.uri, location.storage_options):
        return False
    snapshot = opened(jvm, session, options, location)
    evolves = schema_mode(options, Settings.of(jvm, session)) == "merge"
    described = snapshot_relation(session, snapshot)
    run = jvm.static("ReplacingRows", "run", session, described, json.dumps(options.values), rows, evolves)
    execute(jvm, session, run, run.description())
    return True


def check(options: Options, overwrites: bool) -> None:
    """Raises an error for options that contradict each other."""
    options.check_write(replaces=True)
    using = options.replace_using
    name = "replaceUsing" if using is not None else "replaceOn"
    if using is None and options.replace_on is None:
        raise InvalidArgumentError("the option targetAlias only applies to replaceOn")
    if not overwrites:
        raise InvalidArgumentError(
            f"the option {name} needs the mode overwrite: other writes do not replace rows"
        )
    if options.base_version is not None:
        raise InvalidArgumentError(f"the options {name} and baseVersion cannot be used together")
    if using is not None and options.replace_on is not None:
        raise InvalidArgumentError("the options replaceOn and replaceUsing cannot be used together")
    if options.replace_where is not None:
        raise InvalidArgumentError(f"the options {name} and replaceWhere cannot be used together")
    if options.values.get(OPTION.lower(), "static").strip().lower() != "static":
        raise InvalidArgumentError(
            f"the option {name} cannot be used with a dynamic overwrite: set {OPTION} to static, or leave out {name}"
        )
    if options.is_true("overwriteSchema"):
        raise InvalidArgumentError(
            f"the options {name} and overwriteSchema cannot be used together: the rows that stay have the old schema"
        )
    if options.target_alias is not None and using is not None:
        raise InvalidArgumentError("the option targetAlias only applies to replaceOn")
