package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Takes fields of the column _metadata from the scan itself. Spark builds a struct from them, one
 * object per row, even if the query uses only its fields.
 */
public class MetadataFields extends scala.runtime.AbstractPartialFunction {
  private final Alias metadata;
  private final Seq values;

  private MetadataFields(Alias metadata, CreateNamedStruct struct) {
    this.metadata = metadata;
    this.values = struct.valExprs().toSeq();
  }

  /**
   * Returns a plan of Spark for a scan, which builds no such struct if none of its columns is the
   * whole struct.
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
    List columns = new ArrayList();
    Iterator each = outer.projectList().iterator();
    while (each.hasNext() && source != null) {
      Expression column = ((Expression) each.next()).transform(fields);
      columns.add(column);
      source = fields.remainsIn(column) ? null : source;
    }
    return source == null ? plan : new ProjectExec(Plans.seq(columns), source);
  }

  /** Returns null unless the columns are the scan's and one struct. */
  private static MetadataFields of(Seq projected) {
    MetadataFields found = null;
    Iterator each = projected.iterator();
    while (each.hasNext()) {
      Object column = each.next();
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
  public boolean isDefinedAt(Object node) {
    return node instanceof GetStructField field && isMetadata(field.child());
  }

  @Override
  public Object applyOrElse(Object node, Function1 otherwise) {
    return isDefinedAt(node)
        ? values.apply(((GetStructField) node).ordinal())
        : otherwise.apply(node);
  }
}
