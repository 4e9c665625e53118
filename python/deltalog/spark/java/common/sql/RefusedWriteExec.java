package io.deltalog.spark;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.Seq;

/**
 * A write of one of Spark's own sources to a directory of a Delta table. It is refused when it
 * runs.
 */
public class RefusedWriteExec extends OwnCommandExec {
  private final Path directory;
  private final Path table;

  public RefusedWriteExec(LogicalPlan statement, Path directory, Path table) {
    super(statement);
    this.directory = directory;
    this.table = table;
  }

  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? statement : index == 1 ? directory : table;
  }

  @Override
  public Seq<InternalRow> run() {
    throw Bridge.refusals().write(directory.toString(), table.toString());
  }
}
