package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Removes void columns and void fields of structs from rows, because files do not contain them. The
 * core refuses arrays and maps of void, and structs with only void fields.
 */
final class StoredColumns {
  private StoredColumns() {}

  static Dataset<Row> of(Dataset<Row> rows) {
    List<Column> columns = new ArrayList<>();
    for (Attribute attribute : Projection.attributes(rows)) {
      DataType type = attribute.dataType();
      if (!VoidColumns.areIn(type)) {
        columns.add(ExpressionUtils.column(attribute));
      } else if (type instanceof StructType struct) {
        // The cast adds the metadata of the fields, with their ids.
        columns.add(
            ExpressionUtils.column(value(attribute, struct))
                .cast(stored(struct))
                .as(attribute.name(), attribute.metadata()));
      }
    }
    return rows.select(Plans.seq(columns));
  }

  private static Expression value(Expression struct, StructType type) {
    Expression given = new KnownNotNull(struct);
    List<Expression> parts = new ArrayList<>();
    for (int i = 0; i < type.length(); i++) {
      StructField field = type.fields()[i];
      if (!(field.dataType() instanceof NullType)) {
        Expression part = new GetStructField(given, i, Option.apply(field.name()));
        boolean isStored = !VoidColumns.areIn(field.dataType());
        parts.add(Literal.create(field.name(), DataTypes.StringType));
        parts.add(isStored ? part : value(part, (StructType) field.dataType()));
      }
    }
    Expression made = new CreateNamedStruct(Plans.seq(parts));
    return struct.nullable()
        ? new If(new IsNull(struct), Plans.nothing(made.dataType()), made)
        : made;
  }

  private static StructType stored(StructType type) {
    List<StructField> fields = new ArrayList<>();
    for (StructField field : type.fields()) {
      if (field.dataType() instanceof NullType) {
        continue;
      }
      boolean hasFewer =
          field.dataType() instanceof StructType && VoidColumns.areIn(field.dataType());
      DataType stored = hasFewer ? stored((StructType) field.dataType()) : field.dataType();
      fields.add(new StructField(field.name(), stored, field.nullable(), field.metadata()));
    }
    return new StructType(fields.toArray(new StructField[0]));
  }
}
