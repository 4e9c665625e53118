package io.deltalog.spark;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.List;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.spark.sql.execution.datasources.parquet.SpecificParquetRecordReaderBase;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import scala.collection.Iterator;

/**
 * Restricts the row groups of a Spark batch reader, which has not started yet, to selected rows.
 * Pages without selected rows are not read, and the other rows of a page are skipped without being
 * decoded.
 */
public class SelectedPages implements InvocationHandler {
  private static final Field TOTAL =
      HiddenFields.orNull(SpecificParquetRecordReaderBase.class, "totalRowCount");

  private final VectorizedParquetRecordReader records;
  private final ParquetFileReader file;
  private final PageClaims claims;
  private final List<BlockMetaData> blocks;
  private SelectedRows rows;
  private int block;

  private SelectedPages(VectorizedParquetRecordReader records, PageClaims claims) {
    this.records = records;
    this.claims = claims;
    this.file = claims.file();
    this.blocks = file.getRowGroups();
  }

  /**
   * Returns the row groups of a reader; null if the reader cannot select rows, so that all rows
   * must be read.
   */
  public static SelectedPages of(Iterator<?> reader) {
    VectorizedParquetRecordReader records = ParquetReaders.ofBatches(reader);
    PageClaims claims = reader instanceof GuardedRows guarded ? guarded.claims() : null;
    if (records == null || claims == null || TOTAL == null) {
      return null;
    }
    SelectedPages pages = new SelectedPages(records, claims);
    return pages.haveIndexes() ? pages : null;
  }

  /** Returns whether the file states, for all columns, where their pages begin. */
  private boolean haveIndexes() {
    for (BlockMetaData each : blocks) {
      for (ColumnChunkMetaData column : each.getColumns()) {
        if (column.getOffsetIndexReference() == null) {
          return false;
        }
      }
    }
    return true;
  }

  /**
   * Returns the number of rows in the reader's row groups, including pages that the reader may
   * skip.
   */
  public long count() {
    long count = 0;
    for (BlockMetaData block : blocks) {
      count += block.getRowCount();
    }
    return count;
  }

  /** Makes the reader read only these rows. */
  public void select(SelectedRows selected) {
    rows = selected;
    long total = 0;
    for (BlockMetaData each : blocks) {
      total += selected.count(each.getRowIndexOffset(), each.getRowCount());
    }
    try {
      TOTAL.setLong(records, total);
      CheckedRowGroups.set(records, this);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Acts as Spark's reader of row groups: closes it, or returns the next row group with the
   * selected rows.
   */
  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("close")) {
      file.close();
      return null;
    }
    if (!method.getName().equals("readNextRowGroup")) {
      return method.invoke(this, arguments);
    }
    while (block < blocks.size()) {
      int at = block++;
      BlockMetaData each = blocks.get(at);
      long first = each.getRowIndexOffset();
      long length = each.getRowCount();
      if (rows.count(first, length) > 0) {
        PageReadStore pages = file.readFilteredRowGroup(at, rows.ranges(first, length));
        claims.check(pages);
        return pages;
      }
    }
    return null;
  }
}
