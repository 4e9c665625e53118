"""Measures deltalog against its peers in one run, on the same tables. Run `make bench`; `benches/README.md`
explains it.
"""
