package io.deltalog.spark;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * The session catalog, extended by deltalog's tables: entries with this provider, and tables named
 * deltalog.`/path`. All other names are passed to Spark's own catalog.
 *
 * <p>Each lookup of a table loads the newest version, unless the query requests another one. The
 * subclass DeltalogCatalog adds the abilities that only some Spark releases have.
 */
public abstract class BaseCatalog extends DelegatingCatalogExtension
    implements StagingTableCatalog, ProcedureCatalog {
  private static boolean isOurs(Identifier name, Map<String, String> properties) {
    return CatalogEntries.isPath(name) || CatalogEntries.isOurs(provider(properties));
  }

  /**
   * Returns the source of a new table. If the statement names none, Spark's own catalog uses
   * spark.sql.sources.default.
   */
  private static String provider(Map<String, String> properties) {
    String given = properties.get(TableCatalog.PROP_PROVIDER);
    return given == null ? SQLConf.get().defaultDataSourceName() : given;
  }

  /**
   * Returns the active session, after adding deltalog's extensions if they are missing. They are
   * missing if the session configures this catalog, but not `spark.sql.extensions`.
   */
  private static SparkSession session() {
    SparkSession active = SparkSession.active();
    DeltalogExtensions.extend(((org.apache.spark.sql.classic.SparkSession) active).extensions());
    return active;
  }

  /**
   * Returns a deltalog table with one more option (unless the option is null); returns null if the
   * name belongs to something else.
   */
  private static DeltalogTable find(Identifier name, String option, String value) {
    CatalogTable entry = CatalogEntries.isPath(name) ? null : CatalogEntries.find(name);
    Map<String, String> options = CatalogEntries.options(name, entry);
    if (options == null) {
      return null;
    }
    String provider = entry == null ? name.namespace()[0] : entry.provider().get();
    if (option != null) {
      options.put(option, value);
    }
    SparkSession session = session();
    String described = Bridge.tables().state(session, TableOptions.json(options));
    TableState state = TableState.of(session, described, TableOptions.scala(options));
    String kind = entry == null ? null : CatalogEntries.kind(entry);
    return new DeltalogTable(name, state, state.columns(), provider, options, kind, false);
  }

  @Override
  public Table loadTable(Identifier name) throws NoSuchTableException {
    VersionedPath versioned =
        CatalogEntries.isPath(name)
            ? VersionedPath.of(
                session(), name.name(), TableOptions.json(CatalogEntries.options(name)))
            : null;
    if (versioned != null) {
      Identifier table = Identifier.of(name.namespace(), versioned.path());
      return find(table, versioned.option(), versioned.value());
    }
    Table awaited = TableOfStream.find(name);
    if (awaited != null) {
      return awaited;
    }
    Table found = find(name, null, null);
    return found == null ? BuiltinCatalog.load((TableCatalog) delegate, name) : found;
  }

  /** Loads a table for writing; for reading, Spark requests no privileges. */
  @Override
  public Table loadTable(Identifier name, Set<TableWritePrivilege> privileges)
      throws NoSuchTableException {
    boolean isSaveAsTable = WriterApi.isSaveAsTable();
    if (isSaveAsTable && CatalogEntries.isPath(name) && !tableExists(name)) {
      throw new NoSuchTableException(name);
    }
    DeltalogTable found = find(name, null, null);
    if (found == null) {
      return BuiltinCatalog.load((TableCatalog) delegate, name);
    }
    return found.forWriting(isSaveAsTable || InsertColumns.areLeftToUs(privileges));
  }

  @Override
  public Table loadTable(Identifier name, String version) throws NoSuchTableException {
    Table found = find(name, "versionAsOf", version);
    return found == null ? super.loadTable(name, version) : found;
  }

  @Override
  public Table loadTable(Identifier name, long micros) throws NoSuchTableException {
    Table found = find(name, "timestampAsOfMicros", String.valueOf(micros));
    return found == null ? super.loadTable(name, micros) : found;
  }

  @Override
  public boolean tableExists(Identifier name) {
    TableOfStream.take(); // Drop the table of an earlier stream, which Spark has refused.
    if (CatalogEntries.isPath(name)) {
      return Bridge.tables().exists(session(), TableOptions.json(CatalogEntries.options(name)));
    }
    return super.tableExists(name);
  }

  /**
   * Returns all capabilities that Spark has a name for: default values, generated and identity
   * columns.
   */
  @Override
  public Set<TableCatalogCapability> capabilities() {
    Set<TableCatalogCapability> all = new HashSet<>(super.capabilities());
    all.add(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
    all.add(TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_GENERATED_COLUMNS);
    all.add(TableCatalogCapability.SUPPORTS_CREATE_TABLE_WITH_IDENTITY_COLUMNS);
    return all;
  }

  @Override
  public Table createTable(
      Identifier name, Column[] columns, Transform[] transforms, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!isOurs(name, properties)) {
      return super.createTable(name, columns, transforms, properties);
    }
    SparkSession session = session();
    String definition = definition(name, columns, transforms, properties, "create");
    Runnable creation =
        () -> {
          Bridge.definitions().create(session, definition);
          EntryColumns.update(session, name);
        };
    if (WriterApi.isToTable()) {
      String path = Bridge.definitions().place(session, definition);
      String provider = CatalogEntries.isPath(name) ? name.namespace()[0] : provider(properties);
      StructType schema = CatalogV2Util.v2ColumnsToStructType(columns);
      TableOfStream.await(name, provider, path, schema, creation);
    } else {
      creation.run();
    }
    return null; // As in Spark's own catalog, this saves an unnecessary lookup.
  }

  @Override
  public StagedTable stageCreate(
      Identifier name, Column[] columns, Transform[] transforms, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!isOurs(name, properties)) {
      super.createTable(name, columns, transforms, properties);
      try {
        return new OtherStagedTable(this, name, loadTable(name));
      } catch (NoSuchTableException e) {
        throw new IllegalStateException(
            "Spark's catalog has lost the table " + name + " that it has just created", e);
      }
    }
    return staged(name, columns, transforms, properties, "create");
  }

  @Override
  public StagedTable stageReplace(
      Identifier name, Column[] columns, Transform[] transforms, Map<String, String> properties)
      throws NoSuchNamespaceException, NoSuchTableException {
    return replacing(name, columns, transforms, properties, "replace");
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier name, Column[] columns, Transform[] transforms, Map<String, String> properties)
      throws NoSuchNamespaceException {
    return replacing(name, columns, transforms, properties, "createOrReplace");
  }

  private static StagedTable replacing(
      Identifier name,
      Column[] columns,
      Transform[] transforms,
      Map<String, String> properties,
      String mode) {
    if (!isOurs(name, properties)) {
      throw new UnsupportedOperationException(
          "REPLACE TABLE is not supported for the data source "
              + provider(properties)
              + ": the table "
              + CatalogEntries.label(name)
              + " would be lost if the statement failed. Drop it first");
    }
    return staged(
        name, columns, transforms, properties, WriterApi.isSaveAsTable() ? "overwrite" : mode);
  }

  private static StagedTable staged(
      Identifier name,
      Column[] columns,
      Transform[] transforms,
      Map<String, String> properties,
      String mode) {
    StructType schema = CatalogV2Util.v2ColumnsToStructType(columns);
    String definition = definition(name, columns, transforms, properties, mode);
    return new StagedDeltalogTable(
        name, CatalogEntries.label(name), schema, transforms, definition);
  }

  private static String definition(
      Identifier name,
      Column[] columns,
      Transform[] transforms,
      Map<String, String> properties,
      String mode) {
    Map<String, String> all = new HashMap<>(properties);
    if (!CatalogEntries.isPath(name)) {
      CatalogEntries.checkName(name.name());
      all.put(TableCatalog.PROP_PROVIDER, provider(properties));
    }
    return TableDefinition.json(name, CatalogEntries.isPath(name), columns, transforms, all, mode);
  }

  @Override
  public Table alterTable(Identifier name, TableChange... changes) throws NoSuchTableException {
    DeltalogTable found = find(name, null, null);
    if (found == null) {
      return super.alterTable(name, changes);
    }
    String location = newLocation(changes);
    CatalogTable entry =
        location == null || CatalogEntries.isPath(name) ? null : CatalogEntries.find(name);
    if (entry == null) {
      Bridge.definitions().alter(session(), TableOptions.json(found.options()), changes);
    } else {
      move(entry, location);
    }
    EntryColumns.update(session(), name);
    if (entry != null) {
      // The rows that Spark has cached under the name belong to the old table.
      CachedTables.refreshPath((org.apache.spark.sql.classic.SparkSession) session(), found.path());
    }
    return find(name, null, null);
  }

  private static String newLocation(TableChange[] changes) {
    return changes.length == 1
            && changes[0] instanceof TableChange.SetProperty change
            && change.property().equals(TableCatalog.PROP_LOCATION)
        ? change.value()
        : null;
  }

  private static void move(CatalogTable entry, String location) {
    String options = TableOptions.json(CatalogEntries.options(entry));
    String path = Bridge.definitions().relocated(session(), options, location);
    try {
      CatalogEntries.move(entry, new Path(path).toUri());
    } catch (Exception e) {
      Platform.throwException(e);
    }
  }

  /** Returns a deltalog procedure; Spark's own catalog has no procedures. */
  @Override
  public UnboundProcedure loadProcedure(Identifier name) {
    FeatureGroup.OWN_SQL.require();
    boolean isOurs = Procedures.isOurs(name.namespace());
    return new Procedures().load(isOurs ? name.name() : name.toString(), true);
  }

  public Identifier[] listProcedures(String[] namespace) {
    FeatureGroup.OWN_SQL.require();
    return new Procedures().listProcedures(namespace);
  }
}
