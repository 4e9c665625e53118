"""DELETE, UPDATE and MERGE under Spark Connect, where there is no JVM: the client builds DataFrames, workers write."""
