"""The commands, in one file for each group."""
