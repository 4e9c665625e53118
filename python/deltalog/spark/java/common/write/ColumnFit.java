package io.deltalog.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.analysis.TableOutputResolver$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * Fits rows to the columns of a table. The resulting rows have exactly these columns. StoredCast
 * casts values that Spark would refuse; then all values are cast and checked by Spark's own rules
 * for storing values.
 */
public class ColumnFit {
  private static final String FILL_MODES =
      "org.apache.spark.sql.catalyst.analysis.TableOutputResolver$DefaultValueFillMode$";

  private ColumnFit() {}

  /**
   * Matches columns by name. Columns that the rows lack get their default values, or NULL. Fields
   * of structs that the rows lack get NULL.
   */
  public static Dataset<Row> byName(
      SparkSession session, Dataset<Row> rows, StructType schema, String table) {
    if (isFit(rows.schema(), schema)) {
      return rows;
    }
    return fitted(session, withAllFields(session, rows, schema), schema, table, true);
  }

  /**
   * Returns whether the rows already have exactly the columns of the table. Spark's own check takes
   * milliseconds, which slows down small batches of streams. It is still used for nested types, and
   * for columns that are NOT NULL or have a maximum length, because rows may have the metadata of
   * such a column although their values do not comply with it.
   */
  private static boolean isFit(StructType rows, StructType table) {
    StructField[] given = rows.fields();
    StructField[] columns = table.fields();
    boolean isFit = given.length == columns.length;
    for (int i = 0; isFit && i < columns.length; i++) {
      isFit =
          columns[i].nullable()
              && columns[i].dataType() instanceof AtomicType
              && columns[i].dataType().equals(given[i].dataType())
              && columns[i].name().equals(given[i].name())
              && columns[i].metadata().equals(given[i].metadata())
              && CharVarcharUtils$.MODULE$.getRawType(columns[i].metadata()).isEmpty();
    }
    return isFit;
  }

  /**
   * Returns whether rows lack fields of structs that a table has, and have no additional fields.
   */
  static boolean lacksFields(LogicalPlan rows, StructType schema) {
    for (Attribute column : Plans.list(rows.output())) {
      if (lacking(column, schema) != null) {
        return true;
      }
    }
    return false;
  }

  private static Dataset<Row> withAllFields(
      SparkSession session, Dataset<Row> rows, StructType schema) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    if (!lacksFields(plan, schema)) {
      return rows;
    }
    List<NamedExpression> columns = new ArrayList<>();
    for (Attribute column : Plans.list(plan.output())) {
      StructField field = lacking(column, schema);
      if (field == null) {
        columns.add(column);
      } else {
        Expression value = FieldFit.fitted(column, field.dataType(), null);
        columns.add(Plans.alias(value, column.name()));
      }
    }
    return Dataset.ofRows(session, new Project(Plans.seq(columns), plan));
  }

  /** Returns the table's column if the attribute lacks some of its fields; otherwise null. */
  private static StructField lacking(Attribute column, StructType schema) {
    int at = FieldFit.indexOf(schema, column.name());
    StructField field = at < 0 ? null : schema.fields()[at];
    return field != null && FieldFit.isPart(column.dataType(), field.dataType()) ? field : null;
  }

  /** Matches columns by position. The rows must have all columns. */
  public static Dataset<Row> byPosition(
      SparkSession session, Dataset<Row> rows, StructType schema, String table) {
    return fitted(session, rows, schema, table, false);
  }

  private static Dataset<Row> fitted(
      SparkSession session, Dataset<Row> rows, StructType schema, String table, boolean byName) {
    try {
      Method resolve = NamedMethod.of(TableOutputResolver$.MODULE$, "resolveOutputColumns");
      Object[] arguments = {
        table,
        DataTypeUtils$.MODULE$.toAttributes(schema),
        cast(session, rows, schema, byName).queryExecution().analyzed(),
        Boolean.valueOf(byName),
        session.sessionState().conf(),
        fill(resolve.getParameterTypes()[5], byName)
      };
      LogicalPlan plan = (LogicalPlan) resolve.invoke(TableOutputResolver$.MODULE$, arguments);
      return Dataset.ofRows(session, plan);
    } catch (InvocationTargetException e) {
      Platform.throwException(e.getCause());
      return null;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(
          "deltalog cannot use the fitting of columns of this version of Spark: " + e, e);
    }
  }

  /** Casts the values that Spark would refuse for their columns (StoredCast). */
  private static Dataset<Row> cast(
      SparkSession session, Dataset<Row> rows, StructType schema, boolean byName) {
    SQLConf conf = session.sessionState().conf();
    StoredCast casts = new StoredCast(conf, byName);
    Projection made = new Projection(rows);
    StructField[] columns = schema.fields();
    for (int i = 0; i < made.size(); i++) {
      Attribute given = made.attribute(i);
      for (int j = 0; j < columns.length; j++) {
        boolean isMeant =
            byName ? (Boolean) conf.resolver().apply(columns[j].name(), given.name()) : i == j;
        Expression value = isMeant ? casts.of(given, columns[j].dataType()) : given;
        if (value != given) {
          made.put(i, ExpressionUtils.column(value).as(given.name()));
        }
      }
    }
    return made.rows();
  }

  /**
   * Returns the argument that states whether missing columns are filled: a Boolean until Spark 4.1,
   * a mode since 4.2.
   */
  private static Object fill(Class<?> type, boolean fills) throws ReflectiveOperationException {
    if (type == boolean.class) {
      return Boolean.valueOf(fills);
    }
    Class<?> modes = Class.forName(FILL_MODES);
    Object mode = modes.getField("MODULE$").get(null);
    return modes.getMethod(fills ? "FILL" : "NONE").invoke(mode);
  }
}
