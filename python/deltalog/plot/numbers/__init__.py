"""Computes the numbers of the plots from the log. No data file is read."""
