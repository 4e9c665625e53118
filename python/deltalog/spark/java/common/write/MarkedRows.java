package io.deltalog.spark;

import java.util.Map;

/**
 * Describes the markers of a statement (RowAction), which the rows of a job have in addition to the
 * table's columns, and rules for such rows.
 */
public class MarkedRows {
  /** The rows of a plain write, which have only the table's columns. */
  public static final MarkedRows NONE = new MarkedRows(0, false, false, 0);

  private final int markers;
  private final boolean removesOnce;
  private final boolean records;
  private final int tracking;

  /**
   * Describes rows with the given number of marker columns. removesOnce: whether each row may be
   * removed at most once. records: whether all rows except copies are written to the change data
   * feed, without the last columns of the table's files, which track rows.
   */
  MarkedRows(int markers, boolean removesOnce, boolean records, int tracking) {
    this.markers = markers;
    this.removesOnce = removesOnce;
    this.records = records;
    this.tracking = tracking;
  }

  /** Returns the description with the fields from `dml/statement.py`; NONE if they are null. */
  static MarkedRows of(Map<String, ?> fields) {
    if (fields == null) {
      return NONE;
    }
    return new MarkedRows(
        ((Number) fields.get("markers")).intValue(),
        (Boolean) fields.get("removesOnce"),
        (Boolean) fields.get("records"),
        ((Number) fields.get("tracking")).intValue());
  }

  /**
   * Returns the commit protocol of a job with such rows. opensSeveral states whether its tasks may
   * have files of several partitions open.
   */
  public TableCommitProtocol protocol(String root, boolean opensSeveral) {
    return new TableCommitProtocol(root, opensSeveral, removesOnce);
  }

  public int markers() {
    return markers;
  }

  public boolean removesOnce() {
    return removesOnce;
  }

  public boolean records() {
    return records;
  }

  public int tracking() {
    return tracking;
  }
}
