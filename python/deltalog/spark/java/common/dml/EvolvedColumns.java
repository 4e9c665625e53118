package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataType;
import scala.Option;

/**
 * The columns of a table's rows after a statement that may add columns. An added column is NULL in
 * rows that lack it.
 */
public class EvolvedColumns {
  private final Attribute[] columns;
  private final List<NamedExpression> values = new ArrayList<>();
  private final List<Attribute> changed = new ArrayList<>();

  /**
   * Creates the columns from the table's columns. evolved has the added and changed columns; it is
   * null if there are none.
   */
  public EvolvedColumns(EvolvedTarget evolved, Attribute[] known) {
    List<Attribute> all = new ArrayList<>(java.util.Arrays.asList(known));
    int count = evolved == null ? 0 : evolved.columns().length;
    for (int i = 0; i < count; i++) {
      Attribute column = evolved.columns()[i];
      String name = evolved.names()[i];
      int at = 0;
      while (at < known.length && !known[at].name().equalsIgnoreCase(name)) {
        at++;
      }
      DataType type = column.dataType();
      Expression value =
          at < known.length ? FieldFit.fitted(known[at], type, null) : Plans.nothing(type);
      values.add(Plans.alias(cast(value, type), name, column.exprId()));
      Attribute named = column.withName(name);
      changed.add(named);
      if (at < known.length) {
        all.set(at, named);
      } else {
        all.add(named);
      }
    }
    columns = all.toArray(new Attribute[0]);
  }

  private static Expression cast(Expression value, DataType type) {
    return value.dataType().equals(type)
        ? value
        : new Cast(value, type, Option.empty(), EvalMode$.MODULE$.ANSI());
  }

  /** Returns the rows with the added and changed columns after all others. */
  public LogicalPlan over(LogicalPlan rows) {
    if (values.isEmpty()) {
      return rows;
    }
    List<NamedExpression> all = Plans.list(rows.output());
    all.addAll(values);
    return new Project(Plans.seq(all), rows);
  }

  /** Returns the table's columns in order, with the added columns at the end. */
  public Attribute[] columns() {
    return columns;
  }

  /** Returns the added and changed columns. */
  public List<Attribute> changed() {
    return changed;
  }
}
