package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.ClusterByTransform;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.IdentityTransform;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table at one version, as Spark's analyzer sees it.
 *
 * <ul>
 *   <li>Statements are resolved by Spark, and planned by DeltalogStrategy: reads become Spark's own
 *       scan of files, writes go to Python.
 *   <li>The table stays at its version, so a DataFrame always has the same rows. It tells Spark no
 *       id and no version; otherwise Spark would look for newer versions. Each time a query names
 *       the table, the newest version is loaded.
 *   <li>SupportsDeleteV2 lets the analyzer resolve DELETE. The capability
 *       AUTOMATIC_SCHEMA_EVOLUTION is left out: with it, the analyzer would change the table, even
 *       to explain a statement.
 *   <li>SupportsPartitionManagement is for SHOW PARTITIONS. A partition exists only while it has
 *       rows.
 *   <li>V2TableWithV1Fallback is for streams: Spark finds their source and sink through the catalog
 *       entry that the table returns.
 * </ul>
 */
public class DeltalogTable
    implements Table,
        SupportsRead,
        SupportsWrite,
        SupportsMetadataColumns,
        SupportsDeleteV2,
        SupportsPartitionManagement,
        V2TableWithV1Fallback,
        RowTarget {
  private static final String ALLOWED_ROOTS = "allowedRoots";

  private final Identifier identifier;
  private final TableState state;
  private final StructType columns;
  private final String provider;
  private final Map<String, String> options;
  private final String kind;
  private final boolean acceptsAnySchema;

  /**
   * Creates the table.
   *
   * @param columns the columns, with their default values either as in the log or as checked for a
   *     statement that writes
   * @param options the options with which it was opened, including its path
   * @param kind the property that states whether DROP TABLE deletes the files; null if the table
   *     has no catalog entry
   * @param acceptsAnySchema whether deltalog, and not Spark's analyzer, fits rows to its columns
   */
  public DeltalogTable(
      Identifier identifier,
      TableState state,
      StructType columns,
      String provider,
      Map<String, String> options,
      String kind,
      boolean acceptsAnySchema) {
    this.identifier = identifier;
    this.state = state;
    this.columns = columns;
    this.provider = provider;
    this.options = options;
    this.kind = kind;
    this.acceptsAnySchema = acceptsAnySchema;
  }

  public DeltalogRelation relation() {
    return state.relation();
  }

  /** Returns the path of the table, with the URL scheme that Hadoop uses for the store. */
  public String path() {
    return ((DeltalogFileIndex) relation().location()).path();
  }

  public String provider() {
    return provider;
  }

  /** Returns the properties that are stored in the log, and the comment. */
  public Map<String, String> definition() {
    Map<String, String> properties = new TreeMap<>(state.properties());
    properties.remove(TableCatalog.PROP_LOCATION);
    return properties;
  }

  /** Returns the columns for the definition of another table like this one. */
  public Column[] definedColumns() {
    return new DeltalogTable(
            identifier, state, state.definition(), provider, options, kind, acceptsAnySchema)
        .columns();
  }

  /** Returns the options with which the table was opened, including its path. */
  public Map<String, String> options() {
    return options;
  }

  /**
   * Returns the same table for a write whose rows are fitted to the columns by deltalog (if it
   * accepts any schema) or by Spark's analyzer.
   */
  public DeltalogTable accepting(boolean anySchema) {
    return new DeltalogTable(identifier, state, columns, provider, options, kind, anySchema);
  }

  /**
   * Returns the same table for a statement that writes, with columns whose default values were
   * checked. If the statement needs a default value that is not allowed, it fails.
   */
  public DeltalogTable forWriting(boolean anySchema) {
    return new DeltalogTable(
        identifier, state, relation().schema(), provider, options, kind, anySchema);
  }

  @Override
  public boolean acceptsAnySchema() {
    return acceptsAnySchema;
  }

  @Override
  public String name() {
    return CatalogEntries.label(identifier);
  }

  @Override
  public CatalogTable v1Table() {
    return CatalogEntries.shown(identifier, provider, options, relation().schema());
  }

  @Override
  public StructType schema() {
    return columns;
  }

  public String[] partitionColumns() {
    return relation().partitionSchema().fieldNames();
  }

  @Override
  public Transform[] partitioning() {
    List<Transform> transforms = new ArrayList<>();
    for (String column : partitionColumns()) {
      transforms.add(new IdentityTransform(FieldReference.column(column)));
    }
    if (!state.clustering().isEmpty()) {
      List<NamedReference> paths = new ArrayList<>();
      for (scala.collection.immutable.Seq<String> path : state.clustering()) {
        paths.add(new FieldReference(path));
      }
      transforms.add(new ClusterByTransform(Plans.seq(paths)));
    }
    return transforms.toArray(new Transform[0]);
  }

  @Override
  public Map<String, String> properties() {
    Map<String, String> properties = new TreeMap<>(state.properties());
    properties.putAll(state.protocol());
    properties.put(TableCatalog.PROP_PROVIDER, provider);
    if (kind != null) {
      properties.put(kind, "true");
    }
    String roots = new CaseInsensitiveStringMap(options).get(ALLOWED_ROOTS);
    if (roots != null) {
      // Spark expects options as properties with this prefix, and SHOW CREATE TABLE prints them as
      // a clause.
      properties.put(TableCatalog.OPTION_PREFIX + ALLOWED_ROOTS, roots);
    }
    return properties;
  }

  @Override
  public Set<TableCapability> capabilities() {
    Set<TableCapability> all =
        new HashSet<>(
            List.of(
                TableCapability.BATCH_READ,
                TableCapability.BATCH_WRITE,
                TableCapability.TRUNCATE,
                TableCapability.OVERWRITE_BY_FILTER,
                TableCapability.OVERWRITE_DYNAMIC));
    if (acceptsAnySchema) {
      all.add(TableCapability.ACCEPT_ANY_SCHEMA);
    }
    return all;
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return new MetadataColumn[] {new FileMetadata(relation().fileFormat())};
  }

  /**
   * Returns true: as in a scan of files, a column of the table hides the metadata column of the
   * same name.
   */
  @Override
  public boolean canRenameConflictingMetadataColumns() {
    return true;
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap readOptions) {
    return new DeltalogScanBuilder(this.with(readOptions));
  }

  /**
   * Returns this table with the options of a query applied. Options that select a version are
   * ignored, because this table is already at the selected version.
   */
  private DeltalogTable with(CaseInsensitiveStringMap readOptions) {
    Map<String, String> all = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    all.putAll(readOptions.asCaseSensitiveMap());
    all.remove("versionAsOf");
    all.remove("timestampAsOf");
    if (all.isEmpty()) {
      return this;
    }
    all.put("path", options.get("path"));
    org.apache.spark.sql.SparkSession session = org.apache.spark.sql.SparkSession.active();
    String described =
        Bridge.tables().reopened(session, relation().planner(), TableOptions.json(all));
    DeltalogRelation read =
        RelationDescription.relation(session, described, TableOptions.scala(all));
    return new DeltalogTable(
        identifier, state.with(read), columns, provider, options, kind, acceptsAnySchema);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    FeatureGroup.WRITE.require();
    return new DeltalogWriteBuilder(this, info.options());
  }

  /** Writes rows and commits them. */
  @Override
  public void insert(
      SparkSession session,
      Dataset<Row> rows,
      boolean isOverwrite,
      Map<String, String> writeOptions) {
    Map<String, String> all = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    all.putAll(options);
    all.putAll(writeOptions);
    all.put("path", options.get("path"));
    if (isOverwrite) {
      all.putIfAbsent("partitionOverwriteMode", "static");
    }
    Bridge.writes().insert(session, TableOptions.json(all), rows, isOverwrite);
  }

  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    return true;
  }

  @Override
  public void deleteWhere(Predicate[] predicates) {
    throw new IllegalStateException("deltalog: DELETE was not planned by deltalog's strategy");
  }

  @Override
  public boolean truncateTable() {
    Bridge.writes()
        .truncate(org.apache.spark.sql.SparkSession.active(), TableOptions.json(options));
    return true;
  }

  @Override
  public StructType partitionSchema() {
    return relation().partitionSchema();
  }

  @Override
  public InternalRow[] listPartitionIdentifiers(String[] names, InternalRow values) {
    return new TablePartitions(relation().location()).with(names, values);
  }

  /** Returns nothing, because a partition has no metadata besides its files. */
  @Override
  public Map<String, String> loadPartitionMetadata(InternalRow partition) {
    return new TreeMap<>();
  }

  @Override
  public void createPartition(InternalRow partition, Map<String, String> properties) {
    throw partitionsFollowRows();
  }

  @Override
  public boolean dropPartition(InternalRow partition) {
    throw partitionsFollowRows();
  }

  @Override
  public void replacePartitionMetadata(InternalRow partition, Map<String, String> properties) {
    throw partitionsFollowRows();
  }

  private RuntimeException partitionsFollowRows() {
    return new UnsupportedOperationException(
        "the partitions of "
            + name()
            + " come and go with their rows: use INSERT, or DELETE with a condition on "
            + String.join(", ", partitionColumns()));
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof DeltalogTable table
        && acceptsAnySchema == table.acceptsAnySchema
        && relation().location().equals(table.relation().location());
  }

  @Override
  public int hashCode() {
    return relation().location().hashCode();
  }

  @Override
  public String toString() {
    return name();
  }
}
