"""Generates the pages of `docs/reference`. Each page is made from the code that defines the things that it lists."""
