package io.deltalog.spark;

import org.apache.spark.sql.execution.streaming.Offset;

/** A place in a stream. Spark compares offsets by their JSON: each place has one. */
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
