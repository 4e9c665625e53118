"""Log stores that are Python objects. They decide which commits succeed."""

from deltalog.storage import LogStore

def register_log_store(name: str, log_store: LogStore) -> bool:
    """Registers, under a name, an object that decides which commits succeed; see
    `deltalog.storage.register_log_store`.

    Returns False if another object is registered under the name.
    """
