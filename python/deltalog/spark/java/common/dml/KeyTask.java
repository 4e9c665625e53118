package io.deltalog.spark;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Summarizes a part of a MERGE's source, as the bytes of a KeySummary. Runs in tasks. */
public class KeyTask extends AbstractFunction1 implements Serializable {
  private final DataType[] types;

  public KeyTask(DataType[] types) {
    this.types = types;
  }

  @Override
  public Object apply(Object rows) {
    KeySummary summary = new KeySummary(types);
    Iterator each = (Iterator) rows;
    while (each.hasNext()) {
      summary.add((UnsafeRow) each.next());
    }
    try {
      return summary.toBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
