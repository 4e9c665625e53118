package io.deltalog.spark;

/**
 * States what a statement does with a row, as bits of the marker column OPERATION. If a MERGE
 * writes the row, the number of the clause is above these bits.
 */
public class RowAction {
  /** The row is removed from the target. */
  public static final int REMOVE = 1;

  /**
   * The columns are written as a row of the table. Together with REMOVE, this means that the row is
   * changed.
   */
  public static final int WRITE = 2;

  /** A row of the target matches a row of the source, even if no clause applies to them. */
  public static final int MATCHED = 4;

  /** The clause is a WHEN NOT MATCHED BY SOURCE. */
  public static final int BY_SOURCE = 8;

  /** The row is written unchanged. */
  public static final int COPY = 16;

  /** The row has the values before a change. It is only written to the change data feed. */
  public static final int BEFORE = 32;

  /** The row was already removed. It is only written to the change data feed. */
  public static final int GONE = 64;

  /** The number of the bits below the number of the clause. */
  private static final int BITS = 8;

  /**
   * The marker columns, which follow the table's columns: the bits, the number of the file that
   * contains the row, and the row's position in the file. A MERGE with an INSERT clause also has
   * the number of the source's row.
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
