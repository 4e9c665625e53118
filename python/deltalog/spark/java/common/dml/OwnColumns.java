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
 * The columns of DataFrames that a Python DeltaTable has returned. Its methods may refer to them:
 * `df = table.toDF(); table.delete(df.id == 1)`.
 *
 * <p>The columns of each DataFrame have different ids, because the table is read again for each
 * DataFrame. Therefore the columns are marked with the id of the table, in the place where Spark
 * stores the id of the JVM, and a method recognizes them without a list of all DataFrames.
 */
public class OwnColumns {
  private final UUID table;

  /** Takes the id of the table, as a string. */
  public OwnColumns(String table) {
    this.table = UUID.fromString(table);
  }

  /** Returns a DataFrame whose columns are marked with the id of the table. */
  public Dataset<Row> shown(SparkSession session, Dataset<Row> rows) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    return Dataset.ofRows(session, plan.transformAllExpressions(new Marking()));
  }

  /**
   * Returns a statement in which columns of other DataFrames are replaced with the target's columns
   * of the same names. If the source also has a column with that name, the name is resolved again,
   * as in the JVM connector, because it may mean either table.
   */
  public LogicalPlan bound(LogicalPlan statement) {
    List<LogicalPlan> children = Plans.list(statement.children());
    LogicalPlan source = children.size() > 1 ? children.get(1) : null;
    return statement.transformExpressions(new Binding(children.get(0), source));
  }

  private ExprId marked(ExprId id) {
    return new ExprId(id.id(), table);
  }

  /** Marks all columns with the id of the table. */
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

  /** Replaces columns of other DataFrames with columns of the target. */
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
