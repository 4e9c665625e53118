package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.Seq;

/** A statement that Python executes. */
public class DeltalogCommandExec extends OwnCommandExec {
  private final String operation;
  private final LogicalPlan statement;

  public DeltalogCommandExec(String operation, LogicalPlan statement) {
    this.operation = operation;
    this.statement = statement;
  }

  public Seq run() {
    Bridge.call(operation, new Object[] {session(), statement});
    return none();
  }

  public String nodeName() {
    return "Deltalog " + statement.nodeName();
  }

  public int productArity() {
    return 2;
  }

  public Object productElement(int index) {
    return index == 0 ? (Object) operation : (Object) statement;
  }
}
