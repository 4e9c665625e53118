package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;

/**
 * Applies the rules of a table to rows, as expressions in Spark's plan of a write
 * (`write/rules.py`).
 */
public class RowRules {
  private final String table;
  private final int width;
  private final List<Integer> partitions;
  private final List<Map<String, ?>> computed;
  private final List<Map<String, ?>> checks;
  private final String isWritten;

  /** Takes the rules as Python describes them. */
  public RowRules(Map<String, ?> rules) {
    table = (String) rules.get("table");
    width = position(rules.get("width"));
    partitions = Unchecked.cast(rules.get("partitions"));
    computed = Unchecked.cast(rules.get("computed"));
    checks = Unchecked.cast(rules.get("checks"));
    isWritten = (String) rules.get("isWritten");
  }

  /** Returns the rows with the generated columns computed and all rows checked. */
  public Dataset<Row> enforced(Dataset<Row> rows) {
    // Generated columns are computed from the values that will be stored, and may be partition
    // columns themselves.
    Dataset<Row> made = asStored(rows);
    if (!computed.isEmpty()) {
      made = asStored(computed(made));
    }
    return checks.isEmpty() ? made : checked(made);
  }

  /** Returns the rows with NULL in place of empty partition values. */
  private Dataset<Row> asStored(Dataset<Row> rows) {
    Projection made = new Projection(rows);
    for (int position : partitions) {
      Attribute column = made.attribute(position);
      if (FileColumns.mayBeEmpty(column)) {
        made.put(position, FileColumns.stored(column).alias(column.name()));
      }
    }
    return made.rows();
  }

  private Dataset<Row> computed(Dataset<Row> rows) {
    Projection made = new Projection(rows);
    for (Map<String, ?> rule : computed) {
      int position = position(rule.get("position"));
      DataType type = made.attribute(position).dataType();
      Column value = ExpressionUtils.column(generated(rule, made)).cast(type);
      if (rule.get("refusal") != null) {
        Column refused = functions.raise_error(functions.lit(rule.get("refusal"))).cast(type);
        value = functions.when(value.isNotNull(), value).otherwise(refused);
      }
      for (Object sql : new Object[] {rule.get("when"), isWritten}) {
        if (sql != null) {
          value = functions.when(condition(sql, made), value).otherwise(made.column(position));
        }
      }
      made.put(position, value.alias(made.attribute(position).name()));
    }
    return made.rows();
  }

  private Dataset<Row> checked(Dataset<Row> rows) {
    Projection made = new Projection(rows);
    int carrier = carrier(made);
    DataType type = made.attribute(carrier).dataType();
    Column value = made.column(carrier);
    for (Map<String, ?> rule : checks) {
      Column condition;
      if (rule.get("position") == null) {
        RuleExpression given =
            RuleExpression.ofConstraint(table, (String) rule.get("name"), (String) rule.get("sql"));
        condition = ExpressionUtils.column(given.resolved(columns(made)));
      } else {
        int position = position(rule.get("position"));
        Column expected =
            ExpressionUtils.column(generated(rule, made)).cast(made.attribute(position).dataType());
        condition = made.column(position).eqNullSafe(expected);
      }
      // A condition that is NULL counts as violated.
      Column met = functions.coalesce(condition, functions.lit(false));
      if (rule.get("exempt") != null) {
        Column exempt = condition(rule.get("exempt"), made);
        met = functions.when(exempt, functions.lit(true)).otherwise(met);
      }
      if (isWritten != null) {
        met = functions.when(condition(isWritten, made), met).otherwise(functions.lit(true));
      }
      Column refused =
          functions.raise_error(text(rows, (String) rule.get("rule"), condition)).cast(type);
      value = functions.when(met, value).otherwise(refused);
    }
    made.put(carrier, value.alias(made.attribute(carrier).name()));
    return made.rows();
  }

  private Expression generated(Map<String, ?> rule, Projection rows) {
    String column = (String) rule.get("name");
    return RuleExpression.ofGenerated(table, column, (String) rule.get("sql"))
        .resolved(columns(rows));
  }

  /** Returns the columns of the table, without the markers of a statement. */
  private Attribute[] columns(Projection rows) {
    Attribute[] columns = new Attribute[width];
    for (int i = 0; i < width; i++) {
      columns[i] = rows.attribute(i);
    }
    return columns;
  }

  /**
   * Returns the position of the column to which the checks are attached. A nullable column is
   * preferred: a column with checks is no longer NOT NULL, which affects Parquet's schema. The
   * column must not be void, because files do not contain void columns, so Spark would not evaluate
   * the checks.
   */
  private static int carrier(Projection rows) {
    int carrier = -1;
    for (int i = 0; i < rows.size(); i++) {
      Attribute column = rows.attribute(i);
      if (!VoidColumns.areIn(column.dataType())) {
        if (column.nullable()) {
          return i;
        }
        carrier = carrier < 0 ? i : carrier;
      }
    }
    // A struct with a void field is written field by field.
    return Math.max(carrier, 0);
  }

  /** Returns the error message, with the values of the columns that the condition reads. */
  private Column text(Dataset<Row> rows, String rule, Column condition) {
    AttributeSet read =
        rows.select(Plans.seq(List.of(condition))).queryExecution().analyzed().references();
    List<Column> parts = new ArrayList<>();
    parts.add(functions.lit(rule));
    Projection columns = new Projection(rows);
    for (int i = 0; i < columns.size(); i++) {
      if (read.contains(columns.attribute(i))) {
        Column text = columns.column(i).cast("string");
        parts.add(
            functions.lit((parts.size() == 1 ? ": " : ", ") + columns.attribute(i).name() + " = "));
        parts.add(functions.coalesce(text, functions.lit("NULL")));
      }
    }
    return functions.concat(parts.toArray(new Column[0]));
  }

  /**
   * Resolves a condition of deltalog on marker columns. Columns of the table may have the same
   * names, but the marker columns come later and replace them in the map.
   */
  private static Column condition(Object sql, Projection rows) {
    if (sql == null) {
      return null;
    }
    Map<String, Attribute> markers = new HashMap<>();
    for (int i = 0; i < rows.size(); i++) {
      markers.put(rows.attribute(i).name(), rows.attribute(i));
    }
    Expression parsed = CatalystSqlParser$.MODULE$.parseExpression((String) sql);
    return ExpressionUtils.column(parsed.transform(new NamedColumns(markers)));
  }

  private static int position(Object number) {
    return ((Number) number).intValue();
  }
}
