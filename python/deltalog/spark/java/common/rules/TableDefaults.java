package io.deltalog.spark;

import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The default values of a table's columns, as they are passed to Spark's analyzer. The analyzer
 * resolves the values that it needs with its built-in functions, which include functions that
 * RuleExpression does not allow.
 */
public class TableDefaults {
  private static final String DEFAULT = "CURRENT_DEFAULT";

  /**
   * The metadata key for the value that Spark reads where files lack a column. Delta tables do not
   * use it: such columns are NULL.
   */
  private static final String OF_OLD_ROWS = "EXISTS_DEFAULT";

  private TableDefaults() {}

  /** Returns the columns with the default values in the log. */
  public static StructType ofLog(StructType schema) {
    StructField[] fields = schema.fields().clone();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].metadata().contains(OF_OLD_ROWS)) {
        fields[i] =
            with(
                fields[i],
                new MetadataBuilder().withMetadata(fields[i].metadata()).remove(OF_OLD_ROWS));
      }
    }
    return new StructType(fields);
  }

  /**
   * Returns the columns for statements. A default value that is not allowed is replaced by an
   * expression that is not a constant. If the analyzer needs the value, it fails with a message in
   * which Python finds the actual error (`write/rule_errors.py`).
   */
  public static StructType checked(StructType schema, String table) {
    StructField[] fields = schema.fields().clone();
    for (int i = 0; i < fields.length; i++) {
      Metadata metadata = fields[i].metadata();
      if (metadata.contains(DEFAULT)) {
        RuleRefusal refusal =
            RuleExpression.refusalOfDefault(table, fields[i].name(), metadata.getString(DEFAULT));
        if (refusal != null) {
          fields[i] =
              with(
                  fields[i],
                  new MetadataBuilder().withMetadata(metadata).putString(DEFAULT, refusal.sql()));
        }
      }
    }
    return new StructType(fields);
  }

  private static StructField with(StructField field, MetadataBuilder metadata) {
    return new StructField(field.name(), field.dataType(), field.nullable(), metadata.build());
  }
}
