package io.deltalog.spark;

import java.util.List;
import java.util.UUID;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The columns of the frames that a DeltaTable of Python has given out, which its verbs may refer
 * to: `df = table.toDF(); table.delete(df.id == 1)`.
 *
 * <p>Each frame has ids of its own, as a table is read again for each. In place of the id of the
 * JVM they have the table's, so a verb recognizes them without a list of all frames.
 */
public class OwnColumns {
  private final UUID table;

  /** From the id of the table, as text. */
  public OwnColumns(String table) {
    this.table = UUID.fromString(table);
  }

  /** Returns a frame with the columns of the table. */
  public Dataset<Row> shown(SparkSession session, Dataset<Row> rows) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    return Dataset.ofRows(session, plan.transformAllExpressions(new Marking()));
  }

  /**
   * Returns a statement that refers to the columns of its target instead of other frames' columns,
   * by their names. Those that its source has as well are looked for by their names, as the JVM
   * connector does: they may be meant to be of either.
   */
  public LogicalPlan bound(LogicalPlan statement) {
    List<LogicalPlan> children = Plans.list(statement.children());
    LogicalPlan source = children.size() > 1 ? children.get(1) : null;
    return statement.transformExpressions(new Binding(children.get(0), source));
  }

  private ExprId marked(ExprId id) {
    return new ExprId(id.id(), table);
  }

  /** Gives all columns the id of the table. */
  private class Marking extends NodeChange<Expression> {
    @Override
    public boolean isDefinedAt(Expression node) {
      return node instanceof AttributeReference || node instanceof Alias;
    }

    @Override
    protected Expression changed(Expression node) {
      if (node instanceof AttributeReference column) {
        return column.withExprId(marked(column.exprId()));
      }
      Alias alias = (Alias) node;
      return new Alias(
          alias.child(),
          alias.name(),
          marked(alias.exprId()),
          alias.qualifier(),
          alias.explicitMetadata(),
          alias.nonInheritableMetadataKeys());
    }
  }

  /** Replaces columns of other frames by columns of the target. */
  private class Binding extends NodeChange<Expression> {
    private final List<Attribute> columns;
    private final LogicalPlan source;

    Binding(LogicalPlan target, LogicalPlan source) {
      this.columns = Plans.list(target.output());
      this.source = source;
    }

    @Override
    public boolean isDefinedAt(Expression node) {
      return node instanceof AttributeReference column && column.exprId().jvmId().equals(table);
    }

    @Override
    protected Expression changed(Expression node) {
      AttributeReference column = (AttributeReference) node;
      if (source != null && source.outputSet().contains(column)) {
        List<String> parts = Plans.list(column.qualifier());
        parts.add(column.name());
        return new UnresolvedAttribute(Plans.seq(parts));
      }
      return columns.stream()
          .filter(known -> known.name().equals(column.name()))
          .findFirst()
          .orElse(column);
    }
  }
}
