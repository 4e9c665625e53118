"""The contenders, one module each. The functions are the operations.

Functions of the same name do the same work, take the same arguments, time the same laps with the `Watch` that
is their first argument, and must return equal answers. A module imports only what its own environment has.
"""
