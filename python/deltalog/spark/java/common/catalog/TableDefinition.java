package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.IdentityColumnSpec;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The definition of a table in a statement, as JSON for Python. The rules of columns are written as
 * in the log.
 */
public class TableDefinition {
  /** The prefix of properties that define CHECK constraints. */
  public static final String CONSTRAINT = "delta.constraints.";

  /** Returns the definition as JSON; mode states what to do if the table exists. */
  public static String json(
      Identifier name,
      boolean isPath,
      Column[] columns,
      Transform[] transforms,
      Map<String, String> properties,
      String mode) {
    Map<String, Object> definition = new HashMap<>();
    definition.put("name", name.name());
    definition.put("database", isPath ? null : name.namespace()[0]);
    definition.put("schema", schema(columns).json());
    definition.put("transforms", transforms(transforms));
    definition.put("properties", new HashMap<>(properties));
    definition.put("mode", mode);
    return Json.text(definition);
  }

  /**
   * Returns the columns as a schema, in which Spark stores the comments and default values with the
   * fields.
   */
  private static StructType schema(Column[] columns) {
    StructField[] fields = CatalogV2Util.v2ColumnsToStructType(columns).fields();
    StructField[] made = new StructField[fields.length];
    for (int i = 0; i < fields.length; i++) {
      Metadata rules = rules(columns[i], fields[i]);
      made[i] =
          new StructField(fields[i].name(), fields[i].dataType(), fields[i].nullable(), rules);
    }
    // Columns of the types char and varchar are stored as strings, with the length as a rule in the
    // metadata.
    return CharVarcharUtils.replaceCharVarcharWithStringInSchema(new StructType(made));
  }

  /**
   * Returns a schema with one column. Its type is the type in which the log stores the given type,
   * and its metadata has the rules that the stored type does not express.
   */
  public static StructType stored(DataType type) {
    return CharVarcharUtils.replaceCharVarcharWithStringInSchema(
        new StructType().add("column", type));
  }

  private static Metadata rules(Column column, StructField field) {
    MetadataBuilder metadata = new MetadataBuilder().withMetadata(field.metadata());
    if (column.generationExpression() != null) {
      metadata.putString("delta.generationExpression", column.generationExpression());
    }
    IdentityColumnSpec identity = column.identityColumnSpec();
    if (identity != null) {
      metadata.putLong("delta.identity.start", identity.getStart());
      metadata.putLong("delta.identity.step", identity.getStep());
      metadata.putBoolean("delta.identity.allowExplicitInsert", identity.isAllowExplicitInsert());
    }
    return metadata.build();
  }

  /** Returns the name, the text and the column paths of each transform. */
  private static List<Map<String, Object>> transforms(Transform[] transforms) {
    List<Map<String, Object>> all = new ArrayList<>();
    for (Transform transform : transforms) {
      List<String[]> paths = new ArrayList<>();
      for (NamedReference reference : transform.references()) {
        paths.add(reference.fieldNames());
      }
      Map<String, Object> described = new HashMap<>();
      described.put("name", transform.name());
      described.put("text", transform.describe());
      described.put("columns", paths);
      all.add(described);
    }
    return all;
  }
}
