package io.deltalog.spark;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Reads void columns, which files do not contain. Before 4.1, Spark's Parquet reader does not
 * support the type void. So a column that does not exist in any file is read instead of each void
 * column. Its values are NULL as well.
 */
public class VoidColumns {
  private VoidColumns() {}

  /** Returns whether a type is void, or contains a void type. */
  public static boolean areIn(DataType type) {
    if (type instanceof StructType struct) {
      for (StructField field : struct.fields()) {
        if (areIn(field.dataType())) {
          return true;
        }
      }
      return false;
    }
    if (type instanceof ArrayType array) {
      return areIn(array.elementType());
    }
    if (type instanceof MapType map) {
      return areIn(map.keyType()) || areIn(map.valueType());
    }
    return type instanceof NullType;
  }

  /** Returns the columns to read instead of void columns. */
  static StructType read(StructType columns) {
    return areIn(columns) ? (StructType) type(columns) : columns;
  }

  private static DataType type(DataType type) {
    if (type instanceof StructType struct) {
      StructField[] fields = struct.fields().clone();
      for (int i = 0; i < fields.length; i++) {
        StructField field = fields[i];
        // The column has a name that no file contains, and no field id.
        fields[i] =
            field.dataType() instanceof NullType
                ? new StructField(
                    field.name() + " (void)", DataTypes.BooleanType, true, Metadata.empty())
                : new StructField(
                    field.name(), type(field.dataType()), field.nullable(), field.metadata());
      }
      return new StructType(fields);
    }
    if (type instanceof ArrayType array) {
      return new ArrayType(type(array.elementType()), array.containsNull());
    }
    if (type instanceof MapType map) {
      return new MapType(type(map.keyType()), type(map.valueType()), map.valueContainsNull());
    }
    return type instanceof NullType ? DataTypes.BooleanType : type;
  }

  private static DataType typeOf(StructType struct, String name) {
    for (StructField field : struct.fields()) {
      if (field.name().equalsIgnoreCase(name)) {
        return field.dataType();
      }
    }
    return null;
  }

  /**
   * Returns the filters of a scan, except filters on void columns, because a file may have another
   * column with the same name.
   */
  static Seq<Filter> without(Seq<Filter> filters, StructType all) {
    if (!areIn(all)) {
      return filters;
    }
    List<Filter> others = Plans.list(filters);
    others.removeIf(
        filter -> Arrays.stream(filter.references()).anyMatch(column -> leadsTo(column, all)));
    return Plans.seq(others);
  }

  private static boolean leadsTo(String column, StructType all) {
    DataType type = all;
    Iterator<String> parts = CatalogV2Implicits.parseColumnPath(column).iterator();
    while (type instanceof StructType struct && parts.hasNext()) {
      type = typeOf(struct, parts.next());
    }
    return type != null && areIn(type);
  }
}
