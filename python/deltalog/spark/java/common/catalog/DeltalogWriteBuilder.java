package io.deltalog.spark;

import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Declares that all kinds of writes are supported. DeltalogWriteExec learns the kind of write from
 * the statement.
 */
public class DeltalogWriteBuilder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
  private final RowTarget table;
  private final CaseInsensitiveStringMap options;

  public DeltalogWriteBuilder(RowTarget table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
  }

  @Override
  public WriteBuilder truncate() {
    return this;
  }

  @Override
  public WriteBuilder overwrite(Predicate[] predicates) {
    return this;
  }

  @Override
  public WriteBuilder overwriteDynamicPartitions() {
    return this;
  }

  @Override
  public Write build() {
    return new DeltalogWrite(table, options);
  }
}
