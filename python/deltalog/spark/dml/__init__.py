"""DELETE, UPDATE and MERGE: Spark finds and writes the rows, and the core commits the changes."""
