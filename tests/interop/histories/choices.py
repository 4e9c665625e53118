"""Draws the next action of a history, from the actions that the table's state and the player allow."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from tests.interop.histories import actions as does
from tests.interop.histories.model import Model, Predicate

MAP = pa.map_(pa.string(), pa.int32())
KINDS = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(9, 2),
    pa.decimal128(38, 10),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.list_(pa.int32()),
    MAP,
    pa.struct([("a", pa.int32()), ("Bé", pa.struct([("c", pa.string())]))]),
    pa.list_(pa.struct([("x", pa.float64()), ("m", MAP)])),
]
PARTITION_KINDS = [pa.string(), pa.int32(), pa.date32(), pa.bool_()]
WIDER: dict[pa.DataType, list[pa.DataType]] = {
    pa.int8(): [pa.int16(), pa.int32(), pa.int64()],
    pa.int16(): [pa.int32(), pa.int64()],
    pa.int32(): [pa.int64()],
    pa.float32(): [pa.float64()],
    pa.decimal128(9, 2): [pa.decimal128(11, 2), pa.decimal128(20, 5)],
    pa.date32(): [pa.timestamp("us")],
}
# The types of clustering columns: values that have a minimum and a maximum.
CLUSTERED = {
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.decimal128(9, 2), pa.decimal128(38, 10), pa.string(), pa.date32()),
    *(pa.timestamp("us", "UTC"), pa.timestamp("us")),
}
# The connector's MERGE fails if a column name contains a backtick, or the name of a partition column contains a dot.
NAMES = ["{0}", "Upper{0}", "é{0}"]
QUOTED_NAMES = [*NAMES, "a name {0}", "{0},;{{}}()=", "it's {0}", 'quote"{0}']

Draw = Callable[[random.Random, Model], does.Action | None]


def start(rng: random.Random, properties: dict[str, str], has_partitions: bool) -> Model:
    """Draws the schema of a new table, and its partition columns if these are allowed."""
    model = Model(pa.table({"id": pa.array([], pa.int64())}), (), properties)
    parts = rng.sample(PARTITION_KINDS, rng.choice([0, 0, 1, 2]) if has_partitions else 0)
    for kind in [*parts, *rng.sample(KINDS, 5), pa.string()]:
        model = does.AddColumn(_column(rng, model, kind)).apply(model)
    names = model.table.column_names[1 : 1 + len(parts)]
    return replace(model, partition_by=tuple(names))


def draw_action(rng: random.Random, model: Model, plays: Callable[[Model, does.Action], bool]) -> does.Action:
    """Draws an action for which `plays` returns True."""
    while True:
        ((draw, _),) = rng.choices(_DRAWN, [weight for _, weight in _DRAWN])
        action = draw(rng, model)
        if action is not None and plays(model, action):
            return action


def _predicate(rng: random.Random, model: Model) -> Predicate:
    """Draws a predicate. As in SQL, a row with NULL in a compared column does not match."""
    bound = rng.randrange(max(model.next_id, 1))
    found = [
        Predicate(("id",), f"{{0}} % 3 = {bound % 3}", lambda row: row["id"] % 3 == bound % 3),
        Predicate(("id",), f"{{0}} >= {bound}", lambda row: row["id"] >= bound),
        Predicate(("id",), f"{{0}} IN ({bound}, {bound + 2})", lambda row: row["id"] in (bound, bound + 2)),
    ]
    if model.partition_by:
        part = model.partition_by[0]
        in_partition = [Predicate((part,), "{0} IS NULL", lambda row: row[part] is None)]
        kind = model.schema.field(part).type
        if pa.types.is_string(kind):
            in_partition.append(Predicate((part,), "{0} = 'a b'", lambda row: row[part] == "a b"))
            in_partition.append(
                Predicate((part,), "{0} <> 'a/b'", lambda row: row[part] not in (None, "a/b"))
            )
        elif pa.types.is_integer(kind):
            in_partition.append(
                Predicate((part,), "{0} < 0", lambda row: row[part] is not None and row[part] < 0)
            )
        part_alone = rng.choice(in_partition)
        of_rows = rng.choice(found)
        both = Predicate(
            (part, of_rows.columns[0]),
            f"{part_alone.template} AND {of_rows.template.replace('{0}', '{1}')}",
            lambda row: part_alone.holds(row) and of_rows.holds(row),
        )
        found += [part_alone, both]
    return rng.choice(found)


def _column(rng: random.Random, model: Model, kind: pa.DataType) -> pa.Field:
    names = QUOTED_NAMES if model.is_mapped else NAMES
    return pa.field(rng.choice(names).format(f"c{model.names}"), kind)


def _rows(rng: random.Random, model: Model, where: Predicate | None = None) -> pa.Table:
    return model.draw_rows(rng, rng.choice([1, 3, 8]), where=where)


def _replace_where(rng: random.Random, model: Model) -> does.Action:
    predicate = _predicate(rng, model)
    rows = _rows(rng, model, predicate)
    return does.ReplaceWhere(predicate, rows if rng.random() < 0.6 else rows.slice(0, 0))


def _update(rng: random.Random, model: Model) -> does.Action | None:
    values = {pa.string(): ("new 'x'", "'new ''x'''"), pa.int32(): (7, "7"), pa.date32(): (None, "NULL")}
    columns = [field.name for field in model.schema if field.type in values]
    if not columns:
        return None
    column = rng.choice(columns)
    value, literal = values[model.schema.field(column).type]
    return does.Update(_predicate(rng, model), column, value, literal)


def _merge(rng: random.Random, model: Model) -> does.Action:
    known = model.table.column("id").to_pylist()
    new = _rows(rng, model)
    count = min(len(known), rng.randrange(4))
    ids = pa.array(rng.sample(known, count), pa.int64())
    old = model.draw_rows(rng, count)
    return does.Merge(pa.concat_tables([old.set_column(0, "id", ids), new]))


def _append_with_column(rng: random.Random, model: Model) -> does.Action:
    column = _column(rng, model, rng.choice(KINDS))
    rows = model.draw_rows(rng, 3, model.schema.append(column))
    return does.AppendWithColumn(column, rows)


def _overwrite_schema(rng: random.Random, model: Model) -> does.Action | None:
    if model.constraints or model.clustered_by:
        return None
    kept = {"id", *model.partition_by}
    fields = [field for field in model.schema if field.name in kept or rng.random() < 0.7]
    fields.append(_column(rng, model, rng.choice(KINDS)))
    return does.OverwriteSchema(model.draw_rows(rng, 4, pa.schema(fields)))


def _free(model: Model) -> list[str]:
    """Returns the columns that an action may drop: all except `id`, partition columns and clustering columns."""
    kept = {"id", *model.partition_by, *model.clustered_by}
    return [name for name in model.table.column_names if name not in kept]


def _rename(rng: random.Random, model: Model) -> does.Action | None:
    names = model.table.column_names[1:]
    if not model.is_mapped or not names:
        return None
    return does.RenameColumn(rng.choice(names), _column(rng, model, pa.null()).name)


def _drop(rng: random.Random, model: Model) -> does.Action | None:
    names = _free(model)
    return does.DropColumn(rng.choice(names)) if model.is_mapped and len(names) > 1 else None


def _widen(rng: random.Random, model: Model) -> does.Action | None:
    columns = [field for field in model.schema if field.type in WIDER]
    if not model.has("delta.enableTypeWidening") or not columns:
        return None
    column = rng.choice(columns)
    return does.WidenColumn(column.name, rng.choice(WIDER[column.type]))


def _set_property(rng: random.Random, model: Model) -> does.Action:
    name = rng.choice(["mine", "it's `mine`", "delta.checkpointInterval"])
    return does.SetProperty(name, str(rng.randrange(2, 5)))


def _unset_property(rng: random.Random, model: Model) -> does.Action | None:
    names = [name for name in model.properties if "mine" in name]
    return does.UnsetProperty(rng.choice(names)) if names else None


def _add_constraint(rng: random.Random, model: Model) -> does.Action:
    return does.AddConstraint(f"rule{model.names}", f"id >= {-model.names}")


def _drop_constraint(rng: random.Random, model: Model) -> does.Action | None:
    return does.DropConstraint(rng.choice(list(model.constraints))) if model.constraints else None


def _append_once(rng: random.Random, model: Model) -> does.Action:
    app = rng.choice(["job", "другая"])
    return does.AppendOnce(_rows(rng, model), app, model.applications.get(app, 0) + rng.randrange(1, 3))


def _overwrite_partitions(rng: random.Random, model: Model) -> does.Action | None:
    return does.OverwritePartitions(_rows(rng, model)) if model.partition_by else None


def _cluster_by(rng: random.Random, model: Model) -> does.Action | None:
    if not model.may_cluster:
        return None
    columns = [field.name for field in model.schema if field.type in CLUSTERED]
    return does.ClusterBy(tuple(rng.sample(columns, rng.randrange(min(len(columns), 4) + 1))))


def _optimize(rng: random.Random, model: Model) -> does.Action:
    return does.Cluster(rng.random() < 0.5) if model.clustered_by else does.Optimize()


def _restore(rng: random.Random, model: Model) -> does.Action | None:
    return does.Restore(*rng.choice(model.retained)) if model.retained else None


# For each kind of action: how often it is drawn, and the function that draws it.
_DRAWN: list[tuple[Draw, float]] = [
    (lambda rng, model: does.Append(_rows(rng, model)), 5),
    (_append_once, 1),
    (lambda rng, model: does.Overwrite(_rows(rng, model)), 1),
    (_overwrite_partitions, 1.5),
    (_replace_where, 3),
    (lambda rng, model: does.Delete(_predicate(rng, model)), 3),
    (_update, 2),
    (_merge, 2),
    (lambda rng, model: does.AddColumn(_column(rng, model, rng.choice(KINDS))), 1),
    (_append_with_column, 1.5),
    (_overwrite_schema, 0.5),
    (_rename, 1.5),
    (_drop, 1),
    (_widen, 2),
    (_set_property, 0.7),
    (_unset_property, 0.5),
    (_add_constraint, 0.7),
    (_drop_constraint, 0.5),
    (_optimize, 1.5),
    (_cluster_by, 1),
    (lambda rng, model: does.Purge() if model.has("delta.enableDeletionVectors") else None, 1),
    (lambda rng, model: None if model.clustered_by else does.ZOrder(), 0.7),
    (lambda rng, model: does.RecomputeStatistics(), 0.7),
    (_restore, 1),
    (lambda rng, model: does.Vacuum(), 0.5),
    (lambda rng, model: does.Checkpoint(), 1.5),
    (lambda rng, model: does.CompactLog(rng.randrange(2, 5)), 1),
    (lambda rng, model: does.CleanUp(rng.randrange(1, 3)), 0.7),
]
