"""DELETE, UPDATE and MERGE under Spark Connect, where Python has no access to a JVM: the client builds DataFrames, and
workers write.
"""
