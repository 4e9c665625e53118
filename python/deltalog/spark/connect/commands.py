"""The commands of `DeltaTable` that a Connect server with deltalog's catalog executes in its session.

They do the same as in a classic session: executors move data, and names refer to the session's catalog.
"""

import json
from typing import Any

from deltalog._internal import Snapshot
from deltalog.spark.connect.copies import CloneCommand
from deltalog.spark.jvm import Jvm
from deltalog.spark.options import Options
from deltalog.spark.read.relation import open_snapshot
from deltalog.spark.sql import commands
from deltalog.spark.sql.clone import CloneRequest, cloned
from deltalog.spark.sql.definition_plans import DEFINE, TablePlan, define
from deltalog.spark.sql.entries import UPDATE_ENTRY
from deltalog.spark.sql.executors import Executors
from deltalog.spark.sql.maintenance import optimized
from deltalog.spark.write.caches import refresh

# The commands that may change the rows of the table. Their answers include the version that they have committed.
_CHANGING_ROWS = ("restore", "repair")


def execute(jvm: Jvm, session: Any, options: Options, command: str, arguments: dict[str, Any]) -> Any:
    """Returns the result of a command on the table that the options name."""
    if command == DEFINE:
        return define(jvm, session, TablePlan(**arguments))
    if command == UPDATE_ENTRY:
        return jvm.static("EntryColumns", "update", session, arguments["name"])
    place = options.without_command()
    newest = open_snapshot(jvm, session, place)
    if command == "clone":
        return _clone(jvm, session, newest, place, CloneCommand(**arguments))
    if command == "optimize":
        return optimized(newest, **arguments, executors=Executors(jvm, session))
    answer = commands.answer(newest, command, arguments)
    if command in _CHANGING_ROWS:
        refresh(jvm, session, newest.uri, answer["version"])
    return answer


def _clone(jvm: Jvm, session: Any, newest: Snapshot, place: Options, command: CloneCommand) -> None:
    """Creates a clone. If the target is a path, its store is accessed with the options of the source."""
    modes = {"overwrite": "create or replace", "error": "create"}
    store = {**place.storage, **place.hadoop}
    properties = json.dumps(command.properties)
    asked = CloneRequest(command.target, command.shallow, modes[command.mode], None, properties, store)
    cloned(jvm, session, command.source(newest), asked, command.user_metadata)
