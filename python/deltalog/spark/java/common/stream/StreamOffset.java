package io.deltalog.spark;

import org.apache.spark.sql.execution.streaming.Offset;

/** A position in a stream. Spark compares offsets by their JSON, and each position has only one. */
public final class StreamOffset extends Offset {
  private final String json;

  StreamOffset(String json) {
    this.json = json;
  }

  @Override
  public String json() {
    return json;
  }
}
