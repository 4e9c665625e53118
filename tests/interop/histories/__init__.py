"""Random histories of one table. deltalog, `deltalake` and the JVM connector write it in turns, and all of them read
it.
"""
