"""`DeltaTable`, with the names of `delta.tables.DeltaTable`."""


class DeltaTable:
    pass
