package io.deltalog.spark;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.TypeUtils$;
import org.apache.spark.sql.types.DataType;
import scala.math.Ordering;

/**
 * A summary of a MERGE's source, which is computed before the target is read: the number of rows,
 * and the keys of the rows that can match. If there are only a few of these rows, all keys are
 * kept; otherwise only the least and the greatest value of each key.
 *
 * <p>The first column of a row states whether the row can match; the values of the keys follow.
 */
public class KeySummary implements Serializable {
  private static final int MOST_ROWS = 10000;
  private static final int MOST_BYTES = 1 << 20;

  private final DataType[] types;
  private long count;

  /** The rows with the least and the greatest value of each key. */
  private final UnsafeRow[] least;

  private final UnsafeRow[] greatest;

  /** The rows that can match, or null if there are too many. */
  private List<UnsafeRow> rows = new ArrayList<>();

  private long bytes;
  private transient Ordering<Object>[] orders;

  public KeySummary(DataType[] types) {
    this.types = types;
    this.least = new UnsafeRow[types.length];
    this.greatest = new UnsafeRow[types.length];
  }

  /** Adds a row of the source. The caller may reuse the row afterwards. */
  public void add(UnsafeRow row) {
    count++;
    if (row.isNullAt(0) || !row.getBoolean(0)) {
      return;
    }
    UnsafeRow copy = null;
    if (rows != null) {
      copy = row.copy();
      keep(copy);
    }
    for (int i = 0; i < types.length; i++) {
      if (!row.isNullAt(1 + i) && (isBefore(row, least[i], i) || isBefore(greatest[i], row, i))) {
        copy = copy == null ? row.copy() : copy;
        widen(copy, i);
      }
    }
  }

  /** Adds the summary for another part of the source. */
  public void add(KeySummary other) {
    count += other.count;
    if (other.rows == null) {
      rows = null;
    }
    for (int i = 0; rows != null && i < other.rows.size(); i++) {
      keep(other.rows.get(i));
    }
    for (int i = 0; i < types.length; i++) {
      if (other.least[i] != null) {
        widen(other.least[i], i);
        widen(other.greatest[i], i);
      }
    }
  }

  private void keep(UnsafeRow row) {
    bytes += row.getSizeInBytes();
    rows.add(row);
    if (rows.size() > MOST_ROWS || bytes > MOST_BYTES) {
      rows = null;
    }
  }

  private void widen(UnsafeRow row, int key) {
    if (isBefore(row, least[key], key)) {
      least[key] = row;
    }
    if (isBefore(greatest[key], row, key)) {
      greatest[key] = row;
    }
  }

  /**
   * Returns whether the key is less in the first row. Also returns true if one of the rows is
   * missing, because the first row of the source is both the least and the greatest.
   */
  private boolean isBefore(UnsafeRow first, UnsafeRow second, int key) {
    if (first == null || second == null) {
      return true;
    }
    return order(key).compare(first.get(1 + key, types[key]), second.get(1 + key, types[key])) < 0;
  }

  private Ordering<Object> order(int key) {
    if (orders == null) {
      orders = Unchecked.cast(new Ordering<?>[types.length]);
      for (int i = 0; i < types.length; i++) {
        orders[i] = TypeUtils$.MODULE$.getInterpretedOrdering(types[i]);
      }
    }
    return orders[key];
  }

  /** Returns the number of all rows, including those that cannot match. */
  public long count() {
    return count;
  }

  /** Returns the least value of a key, or null if no row that can match has one. */
  public Object least(int key) {
    return least[key] == null ? null : least[key].get(1 + key, types[key]);
  }

  public Object greatest(int key) {
    return greatest[key] == null ? null : greatest[key].get(1 + key, types[key]);
  }

  /** Returns whether all values of the keys are known. */
  public boolean hasAll() {
    return rows != null;
  }

  /** Returns the values of a key except NULL. Values may be repeated. */
  public List<Object> values(int key) {
    List<Object> values = new ArrayList<>();
    for (UnsafeRow row : rows) {
      if (!row.isNullAt(1 + key)) {
        values.add(row.get(1 + key, types[key]));
      }
    }
    return values;
  }

  /** Returns the summary as bytes, which every serializer that users may choose can handle. */
  public byte[] toBytes() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    ObjectOutputStream out = new ObjectOutputStream(bytes);
    out.writeObject(this);
    out.close();
    return bytes.toByteArray();
  }

  public static KeySummary of(byte[] bytes) throws IOException, ClassNotFoundException {
    return (KeySummary) new ObjectInputStream(new ByteArrayInputStream(bytes)).readObject();
  }
}
