package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * The scan of a table if Hadoop cannot access its files: the relation is replaced with rows that
 * Python workers read. Files that the filters exclude according to the log are not read, and Spark
 * applies all filters to the rows.
 */
public class PortableScan extends NodeChange<LogicalPlan> {
  private final LogicalRelation source;
  private final LogicalPlan rows;

  private PortableScan(LogicalRelation source, LogicalPlan rows) {
    this.source = source;
    this.rows = rows;
  }

  /** Returns whether a plan reads only one table, and Hadoop cannot access its files. */
  static boolean isNeeded(LogicalPlan plan) {
    return !((DeltalogFileIndex) ((DeltalogRelation) source(plan).relation()).location())
        .isInReach();
  }

  private static LogicalRelation source(LogicalPlan plan) {
    LogicalPlan node = plan;
    while (!(node instanceof LogicalRelation)) {
      node = node.children().head();
    }
    return (LogicalRelation) node;
  }

  /** Returns the plan of projections and filters over one table. */
  static Seq<SparkPlan> of(LogicalPlan plan) {
    LogicalRelation source = source(plan);
    AttributeSet used = used(plan);
    List<Expression> filters = new ArrayList<>();
    for (LogicalPlan node = plan; node != source; node = node.children().head()) {
      if (node instanceof Filter filter) {
        Expression condition = filter.condition();
        if (condition.deterministic() && condition.references().subsetOf(source.outputSet())) {
          filters.add(condition);
        }
      }
    }
    List<AttributeReference> read = new ArrayList<>();
    StructType schema = new StructType();
    Iterator<AttributeReference> output = source.output().iterator();
    while (output.hasNext()) {
      AttributeReference column = output.next();
      // One column is always read, because a batch without columns would have no number of rows.
      boolean isNeeded = used.contains(column) || (!output.hasNext() && read.isEmpty());
      if (isNeeded) {
        read.add(column);
        schema = schema.add(column.name(), column.dataType(), column.nullable(), column.metadata());
      }
    }
    DeltalogRelation relation = (DeltalogRelation) source.relation();
    String text = FilterText.of(ScanPlan.known(Plans.seq(filters)));
    Object rows =
        Bridge.tables()
            .portable(
                relation.sparkSession(),
                relation.planner(),
                schema.json(),
                text,
                SQLConf.get().sessionLocalTimeZone());
    LogicalPlan found =
        ((org.apache.spark.sql.classic.Dataset<?>) rows).queryExecution().optimizedPlan();
    LogicalPlan instead = plan.transform(new PortableScan(source, renamed(found, read)));
    return Plans.seq(Collections.singletonList(new PlanLater(instead)));
  }

  private static AttributeSet used(LogicalPlan plan) {
    AttributeSet used = plan.outputSet();
    for (LogicalPlan node = plan; !node.children().isEmpty(); node = node.children().head()) {
      used = used.$plus$plus(node.references());
    }
    return used;
  }

  /** Returns the rows with the names and expression ids of the relation. */
  private static LogicalPlan renamed(LogicalPlan rows, List<AttributeReference> columns) {
    List<NamedExpression> named = new ArrayList<>();
    Iterator<Attribute> each = rows.output().iterator();
    for (AttributeReference column : columns) {
      Attribute value = each.next();
      Seq<String> none = Plans.none();
      named.add(
          new Alias(
              value,
              column.name(),
              column.exprId(),
              column.qualifier(),
              Option.apply(column.metadata()),
              none));
    }
    return new Project(Plans.seq(named), rows);
  }

  @Override
  public boolean isDefinedAt(LogicalPlan node) {
    return node == source;
  }

  @Override
  protected LogicalPlan changed(LogicalPlan node) {
    return rows;
  }
}
