package io.deltalog.spark;

import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Who fits the rows of an INSERT to the columns of the table. Before 4.2, Spark's analyzer refuses
 * rows that lack columns, and in all releases those that lack a NOT NULL column whose values we
 * compute. So there we fit them, as those of other writes. A MERGE that updates asks for another
 * privilege.
 */
public class InsertColumns {
  private static final String[] COMPUTED =
      new String[] {"delta.generationExpression", "delta.identity.start"};

  public static boolean areLeftToUs(Set privileges, StructType columns) {
    if (!privileges.contains(TableWritePrivilege.INSERT)
        || privileges.contains(TableWritePrivilege.UPDATE)) {
      return false;
    }
    String version = SparkSession.active().version();
    return version.startsWith("4.0.") || version.startsWith("4.1.") || hasComputedNotNull(columns);
  }

  private static boolean hasComputedNotNull(StructType columns) {
    StructField[] fields = columns.fields();
    for (int i = 0; i < fields.length; i++) {
      for (int j = 0; j < COMPUTED.length; j++) {
        if (!fields[i].nullable() && fields[i].metadata().contains(COMPUTED[j])) {
          return true;
        }
      }
    }
    return false;
  }
}
