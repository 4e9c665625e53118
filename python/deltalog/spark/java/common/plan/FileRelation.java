package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Replaces the scan of a table in deltalog's catalog with a relation of files, which Spark's own
 * strategy can scan. The columns keep their expression ids, so the plan around the relation stays
 * valid.
 */
public class FileRelation extends NodeChange<LogicalPlan> {
  /** The metadata key with which Spark marks the column _metadata of a table. */
  private static final String METADATA_COLUMN = "__metadata_col";

  /** Returns whether the plan is a scan of a table in deltalog's catalog. */
  public static boolean isScan(Object plan) {
    return plan instanceof DataSourceV2ScanRelation dataSourceV2ScanRelation
        && dataSourceV2ScanRelation.scan() instanceof DeltalogScan;
  }

  @Override
  public boolean isDefinedAt(LogicalPlan node) {
    return isScan(node);
  }

  @Override
  protected LogicalPlan changed(LogicalPlan node) {
    DataSourceV2ScanRelation scan = (DataSourceV2ScanRelation) node;
    return new Project(Unchecked.cast(scan.output()), of(scan));
  }

  /** Returns the relation, which has all columns of the table. */
  public static LogicalRelation of(DataSourceV2ScanRelation scan) {
    DeltalogRelation relation = ((DeltalogScan) scan.scan()).table().relation();
    Map<ExprId, AttributeReference> read = new HashMap<>();
    for (AttributeReference column : Plans.each(scan.output())) {
      read.put(column.exprId(), column);
    }
    List<AttributeReference> output = new ArrayList<>();
    List<AttributeReference> metadata = new ArrayList<>();
    // The type that is read for a column may lack fields that the query does not use.
    Map<String, DataType> types = new HashMap<>();
    for (AttributeReference column : Plans.each(scan.relation().output())) {
      AttributeReference asRead = read.get(column.exprId());
      if (column.metadata().contains(METADATA_COLUMN)) {
        if (asRead != null) {
          metadata.add(marked(asRead, relation.fileFormat().createFileMetadataCol()));
        }
      } else {
        output.add(asRead == null ? column : asRead);
        if (asRead != null && !asRead.dataType().equals(column.dataType())) {
          types.put(column.name(), asRead.dataType());
        }
      }
    }
    output.addAll(metadata);
    Seq<AttributeReference> attributes = Plans.seq(output);
    Object[] fields = {pruned(relation, types), attributes, Option.empty(), false, Option.empty()};
    try {
      return CaseClass.create(LogicalRelation.class, fields);
    } catch (Exception e) {
      throw new IllegalStateException(
          "deltalog cannot use this version of Spark's relations: " + e, e);
    }
  }

  /** Returns the relation with the column types that are read. */
  private static DeltalogRelation pruned(DeltalogRelation relation, Map<String, DataType> types) {
    if (types.isEmpty()) {
      return relation;
    }
    StructField[] fields = relation.dataSchema().fields().clone();
    for (int i = 0; i < fields.length; i++) {
      DataType type = types.get(fields[i].name());
      if (type != null) {
        fields[i] =
            new StructField(fields[i].name(), type, fields[i].nullable(), fields[i].metadata());
      }
    }
    return (DeltalogRelation)
        relation.copy(
            relation.location(),
            relation.partitionSchema(),
            new StructType(fields),
            relation.bucketSpec(),
            relation.fileFormat(),
            relation.options(),
            relation.sparkSession());
  }

  /**
   * Returns the metadata column of a query with the marks by which Spark's strategy recognizes the
   * column and its fields.
   */
  private static AttributeReference marked(AttributeReference column, AttributeReference metadata) {
    StructField[] fields = ((StructType) column.dataType()).fields().clone();
    for (int i = 0; i < fields.length; i++) {
      fields[i] = ((StructType) metadata.dataType()).apply(fields[i].name());
    }
    AttributeReference made = metadata.withExprId(column.exprId());
    made = made.withName(column.name());
    return made.withDataType(new StructType(fields));
  }
}
