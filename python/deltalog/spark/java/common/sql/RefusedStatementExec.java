package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTablePlan;
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand;
import scala.collection.immutable.Seq;

/** A statement that is refused when it runs, but not when it is explained. */
public class RefusedStatementExec extends OwnCommandExec {
  public RefusedStatementExec(LogicalPlan statement) {
    super(statement);
  }

  public Seq run() {
    if (statement instanceof CreateDataSourceTableAsSelectCommand) {
      throw Bridge.refusals().existing(
          session(), ((CreateDataSourceTableAsSelectCommand) statement).table().identifier());
    }
    if (statement instanceof V2CreateTablePlan) {
      throw Bridge.refusals().catalog();
    }
    throw Bridge.refusals().statement(statement);
  }
}
