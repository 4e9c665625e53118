package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Spark's Parquet writer with field ids for the elements of arrays, and for the keys and values of
 * maps. (PROTOCOL.md, "Writer Requirements for IcebergCompatV2".) Spark itself writes the ids of
 * columns and fields only.
 *
 * <p>The metadata of the nearest field above a part contains the part's id, under the path to the
 * part, which begins with the name of that field.
 */
public class PartIdsWriteSupport extends ParquetWriteSupport {
  /** The key in a field's metadata for the ids of its parts. */
  public static final String KEY = "parquet.field.nested.ids";

  @Override
  public WriteSupport.WriteContext init(Configuration configuration) {
    WriteSupport.WriteContext context = super.init(configuration);
    StructType schema =
        (StructType) DataType.fromJson(configuration.get(ParquetWriteSupport.SPARK_ROW_SCHEMA()));
    MessageType file = context.getSchema();
    MessageType identified = new MessageType(file.getName(), fields(file, schema));
    return new WriteSupport.WriteContext(identified, context.getExtraMetaData());
  }

  /** Returns the fields of a group, with ids for all parts inside of them. */
  private static List<Type> fields(GroupType group, StructType schema) {
    List<Type> fields = new ArrayList<>();
    StructField[] columns = schema.fields();
    for (int index = 0; index < columns.length; index++) {
      StructField column = columns[index];
      Metadata ids =
          column.metadata().contains(KEY) ? column.metadata().getMetadata(KEY) : Metadata.empty();
      fields.add(inside(group.getType(index), column.dataType(), ids, column.name()));
    }
    return fields;
  }

  /** Returns a type with ids for the parts inside of it; `path` leads to the type. */
  private static Type inside(Type type, DataType dataType, Metadata ids, String path) {
    if (dataType instanceof StructType structType) {
      GroupType group = type.asGroupType();
      return group.withNewFields(fields(group, structType));
    }
    List<Type> parts = new ArrayList<>();
    if (dataType instanceof ArrayType arrayType) {
      parts.add(part(type, 0, arrayType.elementType(), ids, path + ".element"));
    } else if (dataType instanceof MapType mapType) {
      parts.add(part(type, 0, mapType.keyType(), ids, path + ".key"));
      parts.add(part(type, 1, mapType.valueType(), ids, path + ".value"));
    } else {
      return type;
    }
    GroupType group = type.asGroupType();
    return group.withNewFields(Collections.singletonList(repeated(group).withNewFields(parts)));
  }

  /** Returns the part of an array or map at `index` of its repeated group, with its id. */
  private static Type part(Type type, int index, DataType dataType, Metadata ids, String path) {
    Type part = inside(repeated(type.asGroupType()).getType(index), dataType, ids, path);
    return ids.contains(path) ? part.withId((int) ids.getLong(path)) : part;
  }

  private static GroupType repeated(GroupType group) {
    return group.getType(0).asGroupType();
  }
}
