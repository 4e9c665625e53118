"""Measures deltalog and comparable libraries in one run, on the same tables. Run `make bench`; `benches/README.md`
explains it.
"""
