package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * The target of a MERGE that may add columns: the current columns of the table, and in addition the
 * columns that the statement adds or changes, to which assignments refer.
 *
 * <ul>
 *   <li>Conditions and values only see the current columns of the table, because the additional
 *       columns have unused names. Assignments refer to the additional columns by their ids.
 *   <li>The analysis changes nothing, because it also runs for EXPLAIN. The columns are added by
 *       the commit of the statement.
 * </ul>
 */
public class EvolvedTarget extends LogicalPlan {
  private final LogicalPlan child;
  private final Attribute[] columns;
  private final String[] names;
  private final String data;

  /**
   * Creates the target.
   *
   * @param columns the columns that are added, or have another type
   * @param names the names of these columns in the table
   * @param data the columns of the source that the statement may add, as the JSON of a schema
   */
  public EvolvedTarget(LogicalPlan child, Attribute[] columns, String[] names, String data) {
    this.child = child;
    this.columns = columns;
    this.names = names;
    this.data = data;
  }

  public Attribute[] columns() {
    return columns;
  }

  public String[] names() {
    return names;
  }

  public String data() {
    return data;
  }

  /** Returns the evolved target inside the plan of a target; null if there is none. */
  public static EvolvedTarget in(LogicalPlan plan) {
    LogicalPlan at = plan;
    while (!(at instanceof EvolvedTarget)) {
      if (at.children().size() != 1) {
        return null;
      }
      at = at.children().head();
    }
    return (EvolvedTarget) at;
  }

  @Override
  public Seq<Attribute> output() {
    List<Attribute> all = Plans.list(child.output());
    all.addAll(Arrays.asList(columns));
    return Plans.seq(all);
  }

  @Override
  public Seq<LogicalPlan> children() {
    List<LogicalPlan> children = new ArrayList<>();
    children.add(child);
    return Plans.seq(children);
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new EvolvedTarget(children.head(), columns, names, data);
  }

  /** Returns the number of parameters of the constructor, which Spark needs to copy the node. */
  @Override
  public int productArity() {
    return 4;
  }

  @Override
  public Object productElement(int index) {
    return index == 0
        ? (Object) child
        : index == 1 ? (Object) columns : index == 2 ? (Object) names : (Object) data;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof EvolvedTarget;
  }
}
