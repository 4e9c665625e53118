package io.deltalog.spark;

import org.apache.spark.sql.connector.read.streaming.ReadLimit;

/**
 * A placeholder for the limits of a batch, which are set by the options of a stream. Python applies
 * the limits. Spark passes this object back to the source, unless the trigger reads all rows in one
 * batch.
 */
final class StreamLimit implements ReadLimit {}
