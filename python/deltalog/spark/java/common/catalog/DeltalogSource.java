package io.deltalog.spark;

import org.apache.spark.sql.*;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * The data source that Spark finds under the name "deltalog".
 *
 * <p>Because it is a TableProvider, Spark passes CREATE TABLE and saveAsTable to the catalog. Reads
 * and writes of a path use its V1 relations, and streams use its V1 source and sink.
 */
public class DeltalogSource
    implements DataSourceRegister,
        RelationProvider,
        SchemaRelationProvider,
        CreatableRelationProvider,
        StreamSinkProvider,
        StreamSourceProvider,
        TableProvider {
  /** Creates the source. Spark does this each time it looks up a source by name. */
  public DeltalogSource() {
    ThreadSession.useDefault();
  }

  @Override
  public String shortName() {
    return "deltalog";
  }

  @Override
  public BaseRelation createRelation(SQLContext context, Map<String, String> options) {
    return createRelation(context, options, (StructType) null);
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, Map<String, String> options, StructType schema) {
    Installation.check();
    if (options.contains(CommandAnswer.COMMAND)) {
      return new CommandAnswer(context, options);
    }
    Map<String, String> asked = versioned(context.sparkSession(), options);
    String described =
        Bridge.tables().read(context.sparkSession(), TableOptions.json(asked), schema);
    return RelationDescription.relation(context.sparkSession(), described, asked);
  }

  /**
   * Returns the options. If the path ends with a version, the version becomes an option instead.
   */
  private static Map<String, String> versioned(SparkSession session, Map<String, String> options) {
    scala.Option<String> path = options.get("path");
    VersionedPath found =
        path.isDefined() ? VersionedPath.of(session, path.get(), TableOptions.json(options)) : null;
    if (found == null) {
      return options;
    }
    Map<String, String> located = Unchecked.cast(options.updated("path", found.path()));
    String option = found.option().toLowerCase(java.util.Locale.ROOT);
    return Unchecked.cast(located.updated(option, found.value()));
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, Map<String, String> options, Dataset<Row> data) {
    Installation.check();
    FeatureGroup.WRITE.require();
    String described =
        Bridge.writes().save(context.sparkSession(), TableOptions.json(options), data, mode.name());
    return RelationDescription.relation(context.sparkSession(), described, options);
  }

  @Override
  public Sink createSink(
      SQLContext context, Map<String, String> options, Seq<String> partitions, OutputMode mode) {
    Installation.check();
    FeatureGroup.WRITE.require();
    FeatureGroup.STREAMS.require();
    org.apache.spark.sql.classic.SparkSession session =
        (org.apache.spark.sql.classic.SparkSession) context.sparkSession();
    if (!WriterApi.isToTable()) {
      return new StreamSink(session, options, partitions, mode, false);
    }
    TableOfStream created = TableOfStream.take();
    SessionGuard.checkCatalogOf(session);
    StreamSink sink = new StreamSink(session, options, partitions, mode, created != null);
    if (created != null) {
      created.create();
    }
    sink.define(session);
    return sink;
  }

  @Override
  public Tuple2<String, StructType> sourceSchema(
      SQLContext context, Option<StructType> schema, String provider, Map<String, String> options) {
    Installation.check();
    FeatureGroup.STREAMS.require();
    StructType found = StreamSource.schema(context.sparkSession(), options, expected(schema));
    return new Tuple2<>(shortName(), found);
  }

  @Override
  public Source createSource(
      SQLContext context,
      String metadataPath,
      Option<StructType> schema,
      String provider,
      Map<String, String> options) {
    Installation.check();
    FeatureGroup.STREAMS.require();
    return StreamSource.create(context.sparkSession(), options, expected(schema), metadataPath);
  }

  private static StructType expected(Option<StructType> schema) {
    return schema.isDefined() ? schema.get() : null;
  }

  /**
   * Returns true: the core refuses types that no table can hold, whereas Spark would also refuse
   * variants.
   */
  @Override
  public boolean supportsDataType(DataType type) {
    return true;
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    Installation.check();
    SessionGuard.check();
    return new StructType();
  }

  @Override
  public Table getTable(
      StructType schema, Transform[] transforms, java.util.Map<String, String> properties) {
    Installation.check();
    SessionGuard.check();
    return new SourceTable(schema, transforms);
  }

  /**
   * Returns true except for save. A schema may therefore be passed to load, which compares it with
   * the table's. For save, true would make Spark parse the names of partition columns, which need
   * not be identifiers.
   */
  @Override
  public boolean supportsExternalMetadata() {
    return !WriterApi.isSave();
  }
}
