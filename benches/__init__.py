"""Ours against its peers, in one run, on the same tables:

`make bench`; `benches/README.md` says what and how.
"""
