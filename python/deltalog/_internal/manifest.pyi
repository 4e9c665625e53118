"""Manifests, which let other engines read the table."""

from deltalog._internal.snapshot import Snapshot

def generate_manifests(snapshot: Snapshot) -> tuple[int, int, int]:
    """Writes the manifests of the newest version.

    Returns this version, and the numbers of manifests that were written and deleted.
    """
