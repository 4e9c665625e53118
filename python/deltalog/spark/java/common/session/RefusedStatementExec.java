package io.deltalog.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTablePlan;
import scala.collection.immutable.Seq;

/** A statement that is refused when it runs, but not when it is explained. */
public class RefusedStatementExec extends OwnCommandExec {
  public RefusedStatementExec(LogicalPlan statement) {
    super(statement);
  }

  @Override
  public Seq<InternalRow> run() {
    CatalogTable replacing = DeltalogStrategy.defined(statement);
    if (replacing != null) {
      throw Bridge.refusals().existing(session(), replacing, SessionGuard.configured());
    }
    if (statement instanceof V2CreateTablePlan) {
      throw Bridge.refusals().catalog(SessionGuard.configured());
    }
    if (StatementTarget.isStatement(statement)) {
      FeatureGroup.STATEMENTS.require();
    }
    throw Bridge.refusals().statement(statement);
  }
}
