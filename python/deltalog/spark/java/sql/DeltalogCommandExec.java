package io.deltalog.spark;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** A statement that Python executes when the plan runs, but not when it is explained. */
public class DeltalogCommandExec extends V2CommandExec {
  private final String operation;
  private final LogicalPlan statement;

  public DeltalogCommandExec(String operation, LogicalPlan statement) {
    this.operation = operation;
    this.statement = statement;
  }

  private static Seq none() {
    return scala.jdk.javaapi.CollectionConverters.asScala(new ArrayList()).toSeq();
  }

  public Seq run() {
    Bridge.call(operation, new Object[] {session(), statement});
    return none();
  }

  public Seq output() {
    return none();
  }

  public Seq children() {
    return none();
  }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return this;
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

  public boolean canEqual(Object other) {
    return other == this;
  }
}
