package io.deltalog.spark;

import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;
import scala.collection.immutable.Seq;

/** Carries out an append or an overwrite, from any kind of statement, in one commit. */
public class DeltalogWriteExec extends OwnCommandExec {
  public DeltalogWriteExec(LogicalPlan statement) {
    super(statement);
  }

  /** Returns whether the plan writes to a deltalog table. */
  public static boolean isWrite(LogicalPlan plan) {
    Option<Write> write = write(plan);
    return write.isDefined() && write.get() instanceof DeltalogWrite;
  }

  private static Option<Write> write(LogicalPlan plan) {
    if (plan instanceof AppendData appendData) {
      return appendData.write();
    }
    if (plan instanceof OverwriteByExpression overwriteByExpression) {
      return overwriteByExpression.write();
    }
    return plan instanceof OverwritePartitionsDynamic overwritePartitionsDynamic
        ? overwritePartitionsDynamic.write()
        : Option.empty();
  }

  @Override
  public Seq<InternalRow> run() {
    DeltalogWrite write = (DeltalogWrite) write(statement).get();
    Map<String, String> options = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    options.putAll(write.options().asCaseSensitiveMap());
    if (SchemaEvolution.isStated(statement)) {
      options.put(SchemaEvolution.OPTION, "true");
    }
    if (statement instanceof AppendData append) {

      insert(
          write.table(),
          analyzed(append.analyzedQuery(), append.query()),
          append.isByName(),
          false,
          options);
    } else if (statement instanceof OverwriteByExpression overwrite) {

      if (!overwrite.deleteExpr().equals(Literal.TrueLiteral())) {
        options.put("replaceWhere", FilterText.exact(overwrite.deleteExpr()));
      }
      LogicalPlan query = analyzed(overwrite.analyzedQuery(), overwrite.query());
      insert(write.table(), query, overwrite.isByName(), true, options);
    } else {
      OverwritePartitionsDynamic overwrite = (OverwritePartitionsDynamic) statement;
      options.putIfAbsent("partitionOverwriteMode", "dynamic");
      insert(write.table(), overwrite.query(), overwrite.isByName(), true, options);
    }
    DataSourceV2Relation relation = (DataSourceV2Relation) ((V2WriteCommand) statement).table();
    if (relation.identifier().isDefined() && EntryColumns.mayChange(options)) {
      EntryColumns.update(session(), relation.identifier().get());
    }
    return none();
  }

  private void insert(
      RowTarget table,
      LogicalPlan query,
      boolean isByName,
      boolean isOverwrite,
      Map<String, String> options) {
    Dataset<Row> rows = Dataset.ofRows(session(), query);
    if (table.acceptsAnySchema() && !isByName) {
      if (options.containsKey("replaceOn")) {
        rows = ReplacingRows.marked(session(), rows);
      }
      rows =
          SchemaEvolution.isAsked(statement)
              ? PositionalNames.of(session(), rows, table.schema(), table.name())
              : ColumnFit.byPosition(session(), rows, table.schema(), table.name());
    }
    table.insert(session(), rows, isOverwrite, options);
  }

  /**
   * Returns the query as it was analyzed, which still shows the versions of the tables that it
   * reads.
   */
  private static LogicalPlan analyzed(Option<LogicalPlan> analyzed, LogicalPlan query) {
    return analyzed.isDefined() ? analyzed.get() : query;
  }
}
