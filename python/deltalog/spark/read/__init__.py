"""Reading: versions of tables as Spark relations, whose files the core selects."""
