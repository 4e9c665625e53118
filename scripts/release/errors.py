"""Why a release is refused."""


class RefusedError(Exception):
    """The release must not be made. The message says why, and what to do about it."""
