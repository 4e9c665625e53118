"""Why a release is refused."""


class RefusedError(Exception):
    """A release that must not be made, with what to do about it."""
