package io.deltalog.spark;

import java.util.ArrayList;
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
 * Void columns, which no file has. Before 4.1, Spark's Parquet reader does not know the type. It
 * reads a column that no file has in place of each, and finds NULL as well.
 */
public class VoidColumns {
  private VoidColumns() {}

  /** Returns whether a type is void, or has a part that is. */
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

  /**
   * Returns the columns to read for these, which are a part of all columns of files.
   *
   * <p>Before 4.1, Spark takes a struct for NULL if a file has none of the fields to read. So if
   * only void fields of a struct are left, more of its fields are read. They follow the others,
   * where Spark does not look.
   */
  static StructType read(StructType columns, StructType all) {
    return areIn(columns) ? struct(columns, all) : columns;
  }

  /** Returns whether a column has a struct with only void fields left. */
  static boolean areAllOfAStruct(StructType columns) {
    for (StructField column : columns.fields()) {
      if (hasOnlyVoid(column.dataType())) {
        return true;
      }
    }
    return false;
  }

  private static boolean hasOnlyVoid(DataType type) {
    if (type instanceof StructType struct) {
      return isVoid(struct) || areAllOfAStruct(struct);
    }
    if (type instanceof ArrayType array) {
      return hasOnlyVoid(array.elementType());
    }
    return type instanceof MapType map
        && (hasOnlyVoid(map.keyType()) || hasOnlyVoid(map.valueType()));
  }

  /** Returns whether no file has a part of this type. */
  private static boolean isVoid(DataType type) {
    if (type instanceof StructType struct) {
      for (StructField field : struct.fields()) {
        if (!isVoid(field.dataType())) {
          return false;
        }
      }
      return true;
    }
    return type instanceof NullType
        || (type instanceof ArrayType array && isVoid(array.elementType()))
        || (type instanceof MapType map && isVoid(map.valueType()));
  }

  private static StructType struct(StructType columns, StructType whole) {
    StructField[] fields = columns.fields().clone();
    for (int i = 0; i < fields.length; i++) {
      StructField field = fields[i];
      // A column that files do not have, by its name or by an id.
      fields[i] =
          field.dataType() instanceof NullType
              ? new StructField(
                  field.name() + " (void)", DataTypes.BooleanType, true, Metadata.empty())
              : new StructField(
                  field.name(),
                  type(field.dataType(), typeOf(whole, field.name())),
                  field.nullable(),
                  field.metadata());
    }
    return new StructType(fields);
  }

  private static DataType type(DataType type, DataType whole) {
    if (type instanceof StructType struct) {
      StructType all = whole instanceof StructType found ? found : struct;
      return struct(isVoid(struct) ? withOthers(struct, all) : struct, all);
    }
    if (type instanceof ArrayType array) {
      DataType element = whole instanceof ArrayType found ? found.elementType() : null;
      return new ArrayType(type(array.elementType(), element), array.containsNull());
    }
    if (type instanceof MapType map) {
      MapType all = whole instanceof MapType found ? found : map;
      return new MapType(
          type(map.keyType(), all.keyType()),
          type(map.valueType(), all.valueType()),
          map.valueContainsNull());
    }
    return type instanceof NullType ? DataTypes.BooleanType : type;
  }

  /**
   * Returns a struct with the other fields of the whole, but no more than leave the fields of a row
   * where they are in its memory. A word marks which of 64 fields are NULL.
   */
  private static StructType withOthers(StructType struct, StructType whole) {
    List<StructField> fields = new ArrayList<>(Arrays.asList(struct.fields()));
    int most = (fields.size() + Long.SIZE - 1) / Long.SIZE * Long.SIZE;
    for (StructField field : whole.fields()) {
      if (fields.size() < most && struct.getFieldIndex(field.name()).isEmpty()) {
        fields.add(field);
      }
    }
    return new StructType(fields.toArray(new StructField[0]));
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
   * Returns the filters of a scan that do not concern void columns among all. A file may have a
   * column of that name.
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
