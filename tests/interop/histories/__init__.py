"""Random histories of one table. deltalog, `deltalake` and the JVM connector take turns in writing it, and all three
read every version.
"""
