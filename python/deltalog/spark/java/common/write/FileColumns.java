package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.DateFormatClass;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Converts the columns of rows to the columns of the table's files (`write/fit.py`).
 *
 * <ul>
 *   <li>With column mapping, columns have their physical names and field ids (PROTOCOL.md, "Writer
 *       Requirements for Column Mapping").
 *   <li>Partition columns are converted to strings, written as in the log, so that the names of
 *       directories are exact. If the files contain these columns too, they come after the table's
 *       other columns and keep their types, and the text is in additional columns (PROTOCOL.md,
 *       "Iceberg Compatibility V1", "… V2"; "Iceberg Compatibility V3" of the protocol's requests
 *       for comments).
 *   <li>Void columns and fields are left out.
 *   <li>The last columns of the rows of a statement do not belong to the table, and are not
 *       changed.
 * </ul>
 */
public class FileColumns {
  private static final String TIMESTAMP_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'";

  private final List<Integer> partitions;
  private final StructField[] physical;
  private final List<String> directories;
  private final boolean lacksVoid;
  private final int more;

  /** Takes the columns as Python describes them. */
  public FileColumns(Map<String, ?> columns) {
    partitions = Unchecked.cast(columns.get("partitions"));
    String schema = (String) columns.get("physical");
    physical = schema == null ? null : ((StructType) DataType.fromJson(schema)).fields();
    directories = Unchecked.cast(columns.get("directories"));
    lacksVoid = (Boolean) columns.get("lacksVoid");
    more = ((Number) columns.get("more")).intValue();
  }

  public Dataset<Row> of(Dataset<Row> rows) {
    Dataset<Row> named = renamed(rows);
    Dataset<Row> made = directories == null ? named : withDirectories(named);
    return lacksVoid ? StoredColumns.of(made) : made;
  }

  private Dataset<Row> renamed(Dataset<Row> rows) {
    Projection made = new Projection(rows);
    int width = made.size() - more;
    if (physical != null && physical.length != width) {
      throw new IllegalStateException(
          "the table has " + physical.length + " columns, but the rows have " + width);
    }
    for (int i = 0; i < width; i++) {
      boolean isText = directories == null && partitions.contains(Integer.valueOf(i));
      Column column = isText ? text(made.attribute(i)) : made.column(i);
      if (physical != null) {
        // A cast between structs matches fields by position.
        Column cast = isText ? column : column.cast(physical[i].dataType());
        made.put(i, cast.as(physical[i].name(), physical[i].metadata()));
      } else if (isText) {
        made.put(i, column.alias(made.attribute(i).name()));
      }
    }
    return made.rows();
  }

  /**
   * Returns the rows with the partition columns after all other columns of the table, and their
   * values as strings at the end.
   */
  private Dataset<Row> withDirectories(Dataset<Row> rows) {
    Attribute[] attributes = Projection.attributes(rows);
    int width = attributes.length - more;
    List<Column> columns = new ArrayList<>();
    for (int i = 0; i < width; i++) {
      if (!partitions.contains(Integer.valueOf(i))) {
        columns.add(ExpressionUtils.column(attributes[i]));
      }
    }
    for (int i = 0; i < partitions.size(); i++) {
      Attribute attribute = partition(attributes, i);
      columns.add(stored(attribute).as(attribute.name(), attribute.metadata()));
    }
    for (int i = width; i < attributes.length; i++) {
      columns.add(ExpressionUtils.column(attributes[i]));
    }
    for (int i = 0; i < partitions.size(); i++) {
      columns.add(text(partition(attributes, i)).alias(directories.get(i)));
    }
    return rows.select(Plans.seq(columns));
  }

  /** Returns a partition column as the log stores it, where an empty value is NULL. */
  static Column stored(Attribute attribute) {
    Column column = ExpressionUtils.column(attribute);
    return mayBeEmpty(attribute)
        ? functions.when(functions.length(column).gt(Integer.valueOf(0)), column)
        : column;
  }

  static boolean mayBeEmpty(Attribute attribute) {
    String type = attribute.dataType().typeName();
    return type.equals("string") || type.equals("binary");
  }

  private Attribute partition(Attribute[] attributes, int number) {
    return attributes[partitions.get(number)];
  }

  /**
   * Returns the column as a string, written as in the log (PROTOCOL.md, "Partition Value
   * Serialization").
   *
   * <p>Binary values that are not UTF-8 are refused: directory names would silently replace them.
   */
  private static Column text(Attribute attribute) {
    String type = attribute.dataType().typeName();
    if (type.equals("string")) {
      return ExpressionUtils.column(attribute);
    }
    Option<String> utc = Option.apply("UTC");
    if (type.equals("timestamp")) {
      Literal format = Literal.create(TIMESTAMP_FORMAT, DataTypes.StringType);
      return ExpressionUtils.column(new DateFormatClass(attribute, format, utc));
    }
    Column text =
        ExpressionUtils.column(
            new Cast(attribute, DataTypes.StringType, utc, EvalMode$.MODULE$.ANSI()));
    return type.equals("binary") ? ofUtf8(text, attribute.name()) : text;
  }

  private static Column ofUtf8(Column text, String name) {
    Column refused =
        functions.raise_error(
            functions.lit(
                "the table refuses a row: bytes of the partition column '"
                    + name
                    + "' are not UTF-8, and cannot be a partition value"));
    return functions
        .when(functions.not(functions.is_valid_utf8(text)), refused.cast("string"))
        .otherwise(text);
  }
}
