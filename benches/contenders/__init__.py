"""The contenders of the benchmarks, one module each. The functions of a module are the operations that are measured.

Functions of the same name do the same work, take the same arguments, time the same laps with the `Watch` that
is their first argument, and must return equal answers. A module imports only packages that its own environment has.
"""
