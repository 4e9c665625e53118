package io.deltalog.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;

/**
 * Writes the rows of a bin to its new file, without the columns for old file and position, and
 * counts them.
 */
public class BinWriter extends OutputWriter {
  private final OutputWriter file;
  private final CopiedRows copied;
  private final LeadingColumns leading;
  private final int width;

  /** Creates the writer; the file gets the first `width` columns. */
  public BinWriter(OutputWriter file, CopiedRows copied, LeadingColumns leading, int width) {
    this.file = file;
    this.copied = copied;
    this.leading = leading;
    this.width = width;
  }

  @Override
  public void write(InternalRow row) {
    copied.note(row.getInt(width), row.getLong(width + 1));
    file.write(leading.of(row));
  }

  @Override
  public void close() {
    file.close();
  }

  @Override
  public String path() {
    return file.path();
  }
}
