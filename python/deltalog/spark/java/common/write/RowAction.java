package io.deltalog.spark;

/**
 * What happens to a row in a statement, as bits of the marker column OPERATION. Rows that a MERGE
 * writes have the number of their clause above these bits.
 */
public class RowAction {
  /** The row of the target goes. */
  public static final int REMOVE = 1;

  /** The columns are written as a row of the table. Together with REMOVE: the row is changed. */
  public static final int WRITE = 2;

  /** The rows of the target and of the source match, whether a clause applies to them or not. */
  public static final int MATCHED = 4;

  /** The clause is one of WHEN NOT MATCHED BY SOURCE. */
  public static final int BY_SOURCE = 8;

  /** The row is written unchanged. */
  public static final int COPY = 16;

  /** The row has the values before a change. It only goes to the change data feed. */
  public static final int BEFORE = 32;

  /** The row has been removed before. It goes to the change data feed only. */
  public static final int GONE = 64;

  /** The number of bits below the number of a clause. */
  private static final int BITS = 8;

  /**
   * The marker columns, which follow the table's columns: the bits, the number of the file that has
   * the row, and its position there. A MERGE with an INSERT clause also has the number of the
   * source's row.
   */
  public static final String OPERATION = "__deltalog_operation";

  public static final String FILE = "__deltalog_file";
  public static final String ROW = "__deltalog_row";
  public static final String SOURCE = "__deltalog_source";

  private RowAction() {}

  /** Returns the bits for the number of a clause. */
  public static int ofClause(int number) {
    return number << BITS;
  }
}
