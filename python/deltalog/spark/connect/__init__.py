"""DELETE, UPDATE, MERGE and streams under Spark Connect, where Python has no access to a JVM: the client builds
DataFrames, and the server's workers write files.
"""
