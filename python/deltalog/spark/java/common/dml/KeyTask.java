package io.deltalog.spark;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Summarizes a part of a MERGE's source, as the bytes of a KeySummary. Runs in tasks. */
public class KeyTask extends AbstractFunction1<Iterator<InternalRow>, byte[]>
    implements Serializable {
  private final DataType[] types;

  public KeyTask(DataType[] types) {
    this.types = types;
  }

  @Override
  public byte[] apply(Iterator<InternalRow> rows) {
    KeySummary summary = new KeySummary(types);
    while (rows.hasNext()) {
      summary.add((UnsafeRow) rows.next());
    }
    try {
      return summary.toBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
