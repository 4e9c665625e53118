package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.functions;
import scala.collection.immutable.Seq;

/**
 * A scan of the table that a statement changes. Its columns have the ids to which the statement's
 * expressions refer. After them come the number of the file and the position of the row and, if the
 * table tracks rows, the row id and the row commit version.
 */
public class StatementScan {
  private final LogicalPlan stored;
  private final Attribute[] storedColumns;
  private final LogicalPlan plan;
  private final Attribute[] columns;
  private final Attribute file;
  private final Attribute row;
  private final Attribute[] tracking;
  private final AssignedValues values;

  /** Creates the scan; described is the JSON of RelationDescription. */
  public StatementScan(SparkSession session, String described, StatementTarget target) {
    DeltalogRelation relation =
        RelationDescription.relation(
            session, described, DeltalogRelation.withAllFiles(target.relation().options()));
    values = new AssignedValues(target.label());
    String[] rowTracking = ((SnapshotFormat) relation.fileFormat()).rowTracking();
    Dataset<Row> rows = session.baseRelationToDataFrame(relation);
    // This method is used, because a column of the table may also be named _metadata.
    Column metadata = rows.metadataColumn("_metadata");
    List<Column> selected = new ArrayList<>();
    selected.add(functions.col("*"));
    selected.add(metadata.getField(FileFacts.NUMBER).as(RowAction.FILE));
    selected.add(metadata.getField("row_index").as(RowAction.ROW));
    if (rowTracking.length > 0) {
      selected.add(metadata.getField("row_id").as(rowTracking[0]));
      selected.add(metadata.getField("row_commit_version").as(rowTracking[1]));
    }
    Attribute shown = target.metadata();
    if (shown != null) {
      selected.add(metadata.as(shown.name()));
    }
    LogicalPlan found = rows.select(Plans.seq(selected)).queryExecution().analyzed();
    List<Attribute> all = Plans.list(found.output());
    int width = all.size() - 2 - rowTracking.length - (shown == null ? 0 : 1);
    Map<String, Attribute> targets = byName(target.output());
    Map<ExprId, ExprId> ids = new HashMap<>();
    for (int i = 0; i < all.size(); i++) {
      Attribute column = all.get(i);
      // A column of the table may have the same name as a marker column.
      boolean isMetadata = shown != null && i == all.size() - 1;
      Attribute known = i < width ? targets.get(column.name()) : isMetadata ? shown : null;
      ids.put(
          column.exprId(), known == null ? NamedExpression$.MODULE$.newExprId() : known.exprId());
    }
    // Aliases are not used for this, because Spark would search all constraints for each alias.
    LogicalPlan known = found.transformAllExpressions(new Renumbering(ids));
    Attribute[] output = Plans.list(known.output()).toArray(new Attribute[0]);
    file = output[width];
    row = output[width + 1];
    tracking = Arrays.copyOfRange(output, width + 2, width + 2 + rowTracking.length);
    List<Attribute> further =
        new ArrayList<>(Arrays.asList(Arrays.copyOfRange(output, width, output.length)));
    EvolvedColumns evolved = new EvolvedColumns(target.evolved(), Arrays.copyOf(output, width));
    stored = evolved.over(known);
    storedColumns = evolved.columns();
    further.addAll(evolved.changed());
    plan = target.over(stored, further);
    columns = storedColumns.clone();
    Map<String, Attribute> shownByName = byName(plan.output());
    for (int i = 0; i < width; i++) {
      Attribute seen = shownByName.get(output[i].name());
      boolean isSame = storedColumns[i] == output[i];
      columns[i] = seen == null || !isSame ? storedColumns[i] : seen;
    }
  }

  /** Returns the first attribute of each name. */
  private static Map<String, Attribute> byName(Seq<Attribute> attributes) {
    Map<String, Attribute> found = new HashMap<>();
    for (Attribute each : Plans.list(attributes)) {
      found.putIfAbsent(each.name(), each);
    }
    return found;
  }

  /** Returns the values of all columns after an UPDATE with these assignments. */
  public Expression[] updated(Seq<Assignment> assignments) {
    return values.updated(columns, assignments);
  }

  /** Returns the object that computes the assigned values. */
  public AssignedValues values() {
    return values;
  }

  /** Returns the rows with the values that the statement sees, such as padded CHAR values. */
  public LogicalPlan plan() {
    return plan;
  }

  /** Returns the table's columns of these rows, in order, as they are after the statement. */
  public Attribute[] columns() {
    return columns;
  }

  /** Returns the rows with the values in the files. */
  public LogicalPlan stored() {
    return stored;
  }

  /** Returns the table's columns of these rows, in their order. */
  public Attribute[] storedColumns() {
    return storedColumns;
  }

  /** Returns whether the statement sees the values of the files, without padding. */
  public boolean showsStored() {
    for (int i = 0; i < columns.length; i++) {
      if (!columns[i].exprId().equals(storedColumns[i].exprId())) {
        return false;
      }
    }
    return true;
  }

  public Attribute file() {
    return file;
  }

  public Attribute row() {
    return row;
  }

  /**
   * Returns the columns with the row id and the row commit version; none if the table does not
   * track rows.
   */
  public Attribute[] tracking() {
    return tracking;
  }
}
