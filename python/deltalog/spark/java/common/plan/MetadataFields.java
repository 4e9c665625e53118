package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Takes fields of the column _metadata directly from the scan. Spark would build a struct from
 * them, one object per row, even if the query uses only single fields.
 */
public class MetadataFields extends NodeChange<Expression> {
  private final Alias metadata;
  private final Seq<Expression> values;

  private MetadataFields(Alias metadata, CreateNamedStruct struct) {
    this.metadata = metadata;
    this.values = struct.valExprs().toSeq();
  }

  /**
   * Returns Spark's plan for a scan. If none of its columns is the whole struct, the plan does not
   * build the struct.
   */
  public static SparkPlan direct(SparkPlan plan) {
    if (!(plan instanceof ProjectExec outer)) {
      return plan;
    }
    SparkPlan below = outer.child();
    FilterExec filter = below instanceof FilterExec between ? between : null;
    SparkPlan inner = filter == null ? below : filter.child();
    if (!(inner instanceof ProjectExec lower)
        || !(lower.child() instanceof FileSourceScanExec scan)) {
      return plan;
    }
    MetadataFields fields = of(lower.projectList());
    if (fields == null) {
      return plan;
    }
    SparkPlan source = scan;
    if (filter != null) {
      Expression condition = filter.condition().transform(fields);
      source = fields.remainsIn(condition) ? null : new FilterExec(condition, source);
    }
    List<NamedExpression> columns = new ArrayList<>();
    Iterator<NamedExpression> each = outer.projectList().iterator();
    while (each.hasNext() && source != null) {
      Expression column = ((Expression) each.next()).transform(fields);
      columns.add((NamedExpression) column);
      source = fields.remainsIn(column) ? null : source;
    }
    return source == null ? plan : new ProjectExec(Plans.seq(columns), source);
  }

  /** Returns null unless the columns are the scan's columns and one struct. */
  private static MetadataFields of(Seq<NamedExpression> projected) {
    MetadataFields found = null;
    for (NamedExpression column : Plans.each(projected)) {
      Object value = column instanceof Alias alias ? alias.child() : null;
      if (found == null
          && value instanceof KnownNotNull struct
          && struct.child() instanceof CreateNamedStruct fields) {
        found = new MetadataFields((Alias) column, fields);
      } else if (!(column instanceof AttributeReference)) {
        return null;
      }
    }
    return found;
  }

  private boolean remainsIn(Expression expression) {
    return expression.references().contains(metadata.toAttribute());
  }

  private boolean isMetadata(Object node) {
    return node instanceof AttributeReference column && column.exprId().equals(metadata.exprId());
  }

  @Override
  public boolean isDefinedAt(Expression node) {
    return node instanceof GetStructField field && isMetadata(field.child());
  }

  @Override
  protected Expression changed(Expression node) {
    return values.apply(((GetStructField) node).ordinal());
  }
}
