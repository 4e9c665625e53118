package io.deltalog.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.types.StructType;

/**
 * Writes the rows of a statement, which have the table's columns, followed by the marker columns
 * (RowAction). Rows that are to be written go to the writer of the file, without the markers; rows
 * to remove are recorded; changes go to the change data feed.
 */
public class RowChangeWriter extends OutputWriter {
  private final OutputWriter file;
  private final ChangeWriter changes;
  private final ChangedRows changed;
  private final int width;
  private final boolean hasSource;
  private final LeadingColumns leading;

  /**
   * Creates the writer. changes is null if changes are not recorded; columns are the columns of the
   * table's files; given is the number of all columns.
   */
  public RowChangeWriter(
      OutputWriter file, ChangeWriter changes, ChangedRows changed, StructType columns, int given) {
    this.file = file;
    this.changes = changes;
    this.changed = changed;
    this.width = columns.length();
    this.hasSource = given > width + 3;
    this.leading = new LeadingColumns(columns, width, given);
  }

  @Override
  public void write(InternalRow row) {
    int operation = row.getInt(width);
    boolean isFirst = changed.note(operation, row.getInt(width + 1), row.getLong(width + 2));
    if (hasSource && (operation & RowAction.MATCHED) != 0) {
      changed.match(row.getLong(width + 3));
    }
    if ((operation & RowAction.WRITE) != 0) {
      file.write(leading.of(row));
    }
    if (changes != null) {
      changes.write(row, operation, isFirst);
    }
  }

  @Override
  public void close() {
    try {
      file.close();
    } finally {
      if (changes != null) {
        changes.close();
      }
    }
  }

  @Override
  public String path() {
    return file.path();
  }
}
