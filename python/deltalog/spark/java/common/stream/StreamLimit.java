package io.deltalog.spark;

import org.apache.spark.sql.connector.read.streaming.ReadLimit;

/**
 * The limits of a batch that the options of a stream set, which Python applies. Spark gives it back
 * unless a trigger reads all that there is.
 */
final class StreamLimit implements ReadLimit {}
