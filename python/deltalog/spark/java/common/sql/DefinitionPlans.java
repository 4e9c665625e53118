package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.ColumnDefinition;
import org.apache.spark.sql.catalyst.plans.logical.ColumnDefinition$;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTable;
import org.apache.spark.sql.catalyst.plans.logical.TableSpec;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.ClusterByTransform;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.FieldReference$;
import org.apache.spark.sql.connector.expressions.IdentityTransform;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/**
 * Builds a CREATE or REPLACE TABLE step by step. The result is the plan that Spark's parser would
 * create for the statement.
 */
public class DefinitionPlans {
  private final SparkSession session;
  private final ParserInterface parser;
  private final List<ColumnDefinition> columns = new ArrayList<>();
  private final List<Transform> partitioning = new ArrayList<>();

  public DefinitionPlans(SparkSession session) {
    this.session = session;
    this.parser = session.sessionState().sqlParser();
  }

  /** Returns the JSON of a type that is given in SQL. */
  public String type(String text) throws Exception {
    return parser.parseDataType(text).json();
  }

  /**
   * Adds a column. Type and metadata are JSON; the metadata states, in Spark's terms, how values
   * are generated.
   */
  public void column(String name, String type, boolean nullable, String metadata) throws Exception {
    StructField field =
        new StructField(name, DataType.fromJson(type), nullable, Metadata.fromJson(metadata));
    columns.add(ColumnDefinition$.MODULE$.fromV1Column(field, parser));
  }

  public void partitionBy(String column) {
    List<String> name = new ArrayList<>();
    name.add(column);
    partitioning.add(new IdentityTransform(new FieldReference(Plans.seq(name))));
  }

  /** Clusters the table by columns, which may be fields of structs. */
  public void clusterBy(Seq<String> names) {
    List<NamedReference> found = new ArrayList<>();
    for (String name : Plans.list(names)) {
      found.add(FieldReference$.MODULE$.apply(name));
    }
    partitioning.add(new ClusterByTransform(Plans.seq(found)));
  }

  /** Executes a CREATE TABLE. */
  public void create(
      String name,
      scala.collection.immutable.Map<String, String> properties,
      Option<String> location,
      Option<String> comment,
      boolean ifNotExists)
      throws Exception {
    execute(
        new CreateTable(
            identifier(name),
            Plans.seq(columns),
            Plans.seq(partitioning),
            specification(properties, location, comment),
            ifNotExists));
  }

  /** Executes a REPLACE TABLE, or a CREATE OR REPLACE TABLE. */
  public void replace(
      String name,
      scala.collection.immutable.Map<String, String> properties,
      Option<String> location,
      Option<String> comment,
      boolean orCreate)
      throws Exception {
    execute(
        new ReplaceTable(
            identifier(name),
            Plans.seq(columns),
            Plans.seq(partitioning),
            specification(properties, location, comment),
            orCreate));
  }

  private LogicalPlan identifier(String name) throws Exception {
    Object[] fields = {parser.parseMultipartIdentifier(name)};
    return (LogicalPlan) CaseClass.create(UnresolvedIdentifier.class, fields);
  }

  private static TableSpecBase specification(
      scala.collection.immutable.Map<String, String> properties,
      Option<String> location,
      Option<String> comment)
      throws Exception {
    Object[] fields = {
      properties,
      Option.apply("deltalog"),
      Map$.MODULE$.empty(),
      location,
      comment,
      Option.empty(),
      Option.empty(),
      false
    };
    return (TableSpecBase) CaseClass.create(TableSpec.class, fields);
  }

  private void execute(LogicalPlan plan) {
    Dataset.ofRows(session, plan); // Creating the Dataset executes the command at once.
  }
}
