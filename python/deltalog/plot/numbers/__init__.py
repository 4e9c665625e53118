"""The numbers of the plots, from the log: statistics of files and commits. No data file is read."""
