"""Random histories of one table, which deltalog, `deltalake` and the JVM connector write in turns and all read."""
