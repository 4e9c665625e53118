package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Gives columns of rows the names of the table's columns, for a write by position that may add
 * columns.
 */
public class PositionalNames {
  private PositionalNames() {}

  /**
   * Returns rows whose first columns have the names of the table's columns, also inside structs.
   * The additional columns keep their names. If rows have fewer columns than the table, Spark
   * raises an error.
   */
  static Dataset<Row> of(SparkSession session, Dataset<Row> rows, StructType schema, String table) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    List<Attribute> columns = Plans.list(plan.output());
    if (columns.size() < schema.length()) {
      return ColumnFit.byPosition(session, rows, schema, table);
    }
    List<NamedExpression> made = new ArrayList<>(columns);
    for (int i = 0; i < schema.length(); i++) {
      Attribute column = columns.get(i);
      StructField field = schema.fields()[i];
      DataType type = named(column.dataType(), field.dataType());
      Expression value =
          type.equals(column.dataType())
              ? column
              : new Cast(column, type, Option.empty(), EvalMode$.MODULE$.ANSI());
      made.set(i, Plans.alias(value, field.name()));
    }
    return Dataset.ofRows(session, new Project(Plans.seq(made), plan));
  }

  /**
   * Returns a type with its fields renamed like the fields at the same positions of another type.
   */
  private static DataType named(DataType type, DataType like) {
    if (type instanceof StructType struct && like instanceof StructType known) {
      StructField[] fields = struct.fields().clone();
      for (int i = 0; i < fields.length && i < known.length(); i++) {
        StructField given = fields[i];
        StructField field = known.fields()[i];
        fields[i] =
            new StructField(
                field.name(),
                named(given.dataType(), field.dataType()),
                given.nullable(),
                given.metadata());
      }
      return new StructType(fields);
    }
    if (type instanceof ArrayType array && like instanceof ArrayType known) {
      return new ArrayType(named(array.elementType(), known.elementType()), array.containsNull());
    }
    if (type instanceof MapType map && like instanceof MapType known) {
      return new MapType(
          named(map.keyType(), known.keyType()),
          named(map.valueType(), known.valueType()),
          map.valueContainsNull());
    }
    return type;
  }
}
