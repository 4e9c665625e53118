package io.deltalog.spark;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import scala.collection.Iterator;

/**
 * Checks the pages of a file before Spark's batch reader decompresses them. It replaces the batch
 * reader's reader of row groups.
 */
class CheckedRowGroups implements InvocationHandler {
  private final Object groups;
  private final PageClaims claims;

  private CheckedRowGroups(Object groups, PageClaims claims) {
    this.groups = groups;
    this.claims = claims;
  }

  /** Checks the row groups of a batch reader that has not started yet. */
  static void install(Iterator<?> rows, PageClaims claims) {
    VectorizedParquetRecordReader records = ParquetReaders.ofBatches(rows);
    if (records == null) {
      return;
    }
    try {
      Object groups = ParquetReaders.ROW_GROUPS.get(records);
      set(records, new CheckedRowGroups(groups, claims));
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Makes a batch reader read the row groups that the handler returns. */
  static void set(VectorizedParquetRecordReader records, InvocationHandler handler)
      throws IllegalAccessException {
    Class<?> type = ParquetReaders.ROW_GROUPS.getType();
    ParquetReaders.ROW_GROUPS.set(
        records, Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    Object answer;
    method.setAccessible(true); // The interface is not public.
    try {
      answer = method.invoke(groups, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
    if (answer instanceof PageReadStore pages) {
      claims.check(pages);
    }
    return answer;
  }
}
