package io.deltalog.spark;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Converts the rows of a write to the columns of the table's files, by projections in Spark's plan,
 * which Python describes (`write/rows.py`). Each step is optional.
 *
 * <ol>
 *   <li>fit: the columns of the table, and their types
 *   <li>numbers: the values of identity columns
 *   <li>rules: generated columns and constraints
 *   <li>files: names, field ids, and partition values as text
 * </ol>
 *
 * If rows are balanced, the shuffle is the last step. If there are identity columns, however, it
 * comes before their values are counted, because each task must count the rows that it writes.
 * Expressions of the table are resolved with the settings of the session of the rows, which is not
 * always the active session of the thread.
 */
public class FileRows {
  private final SparkSession session;
  private final Dataset<Row> rows;
  private final Map<String, ?> parts;

  private FileRows(SparkSession session, Dataset<Row> rows, Map<String, ?> parts) {
    this.session = session;
    this.rows = rows;
    this.parts = parts;
  }

  /** Converts the rows by a description in JSON. */
  public static Dataset<Row> of(SparkSession session, Dataset<Row> rows, String description) {
    return of(session, rows, Json.object(description));
  }

  static Dataset<Row> of(SparkSession session, Dataset<Row> rows, Map<String, ?> description) {
    FileRows made = new FileRows(session, rows, description);
    return SQLConf$.MODULE$.withExistingConf(session.sessionState().conf(), made::made);
  }

  private Dataset<Row> made() {
    Dataset<Row> made = rows;
    if (parts.get("fit") != null) {
      made = fitted(session, made, Unchecked.cast(parts.get("fit")));
    }
    Map<String, ?> balance = Unchecked.cast(parts.get("balance"));
    if (balance != null && parts.get("numbers") != null) {
      made = BalancedRows.of(session, made, balance, Unchecked.cast(balance.get("columns")));
    }
    if (parts.get("numbers") != null) {
      made = numbered(made, Unchecked.cast(parts.get("numbers")));
    }
    if (parts.get("rules") != null) {
      made = new RowRules(Unchecked.cast(parts.get("rules"))).enforced(made);
    }
    if (parts.get("files") != null) {
      made = new FileColumns(Unchecked.cast(parts.get("files"))).of(made);
    }
    if (balance != null && parts.get("numbers") == null) {
      made = BalancedRows.of(session, made, balance, Unchecked.cast(balance.get("columns")));
    }
    return made;
  }

  private static Dataset<Row> fitted(SparkSession session, Dataset<Row> rows, Map<String, ?> fit) {
    List<String> dropped = Unchecked.cast(fit.get("dropped"));
    Dataset<Row> kept = dropped.isEmpty() ? rows : rows.drop(Plans.seq(dropped));
    StructType schema = (StructType) DataType.fromJson((String) fit.get("schema"));
    String table = (String) fit.get("table");
    return ColumnFit.byName(session, kept, TableDefaults.checked(schema, table), table);
  }

  private static Dataset<Row> numbered(Dataset<Row> rows, List<Map<String, ?>> numbers) {
    Projection made = new Projection(rows);
    for (Map<String, ?> counted : numbers) {
      int position = ((Number) counted.get("position")).intValue();
      long first = ((Number) counted.get("first")).longValue();
      long step = ((Number) counted.get("step")).longValue();
      String name = made.attribute(position).name();
      made.put(position, IdentityNumbers.of(name, first, step).alias(name));
    }
    return made.rows();
  }
}
