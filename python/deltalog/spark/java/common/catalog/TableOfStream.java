package io.deltalog.spark;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.V2TableWithV1Fallback;
import org.apache.spark.sql.types.StructType;

/**
 * A table that `toTable` is to create for a stream.
 *
 * <p>In one thread, Spark first calls the catalog, to check whether the table exists, to create it
 * and to load it. Then it calls the data source, to create the sink, which may refuse the stream.
 * In that case no table must remain. So the catalog only keeps this object, and the table is
 * created after the sink.
 */
public class TableOfStream implements V2TableWithV1Fallback {
  private static final ThreadLocal<TableOfStream> AWAITED = new ThreadLocal<>();

  private final Identifier identifier;
  private final String provider;
  private final String path;
  private final StructType columns;
  private final Runnable creation;

  private TableOfStream(
      Identifier identifier, String provider, String path, StructType columns, Runnable creation) {
    this.identifier = identifier;
    this.provider = provider;
    this.path = path;
    this.columns = columns;
    this.creation = creation;
  }

  /** Keeps the definition of a table until the same thread takes it. */
  public static void await(
      Identifier identifier, String provider, String path, StructType columns, Runnable creation) {
    AWAITED.set(new TableOfStream(identifier, provider, path, columns, creation));
  }

  /** Returns the table with this name that this thread has kept, or null. */
  public static TableOfStream find(Identifier identifier) {
    TableOfStream awaited = AWAITED.get();
    return awaited != null && awaited.identifier.equals(identifier) && WriterApi.isToTable()
        ? awaited
        : null;
  }

  /** Returns the table that this thread has kept, or null, and forgets it. */
  public static TableOfStream take() {
    TableOfStream awaited = AWAITED.get();
    AWAITED.remove();
    return awaited;
  }

  void create() {
    creation.run();
  }

  @Override
  public CatalogTable v1Table() {
    return CatalogEntries.shown(identifier, provider, Map.of("path", path), columns);
  }

  @Override
  public String name() {
    return CatalogEntries.label(identifier);
  }

  @Override
  public StructType schema() {
    return columns;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of();
  }
}
