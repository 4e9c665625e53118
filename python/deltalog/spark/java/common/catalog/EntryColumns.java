package io.deltalog.spark;

import java.util.Arrays;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Keeps the columns in the catalog entry of a table up to date, for programs that read the catalog
 * instead of the log. For example, the Thrift server answers JDBC's getColumns from them.
 * Statements that may change the columns of a table update its entry. Queries never use these
 * columns.
 */
public final class EntryColumns {
  private static final Logger LOG = LoggerFactory.getLogger(EntryColumns.class);
  private static final Pattern NOT_FOR_HIVE = Pattern.compile("[,:;]");
  private static final String[] EVOLVING = {SchemaEvolution.OPTION, "overwriteSchema"};

  private EntryColumns() {}

  /** Returns whether a write with these options may change the columns of its table. */
  static boolean mayChange(Map<String, String> options) {
    for (String name : EVOLVING) {
      if (Boolean.parseBoolean(options.getOrDefault(name, "false").trim())) {
        return true;
      }
    }
    return SchemaEvolution.isOfSession();
  }

  /** Updates the entry with this name. Does nothing for a path, because it has no entry. */
  public static void update(SparkSession session, String name) {
    try {
      SessionCatalog entries = catalog(session);
      TableIdentifier found =
          TableNames.identifier(
              classic(session),
              Plans.list(
                  classic(session).sessionState().sqlParser().parseMultipartIdentifier(name)));
      if (found != null && !entries.isTempView(found)) {
        Option<String> database = found.database();
        String namespace = database.isDefined() ? database.get() : entries.getCurrentDatabase();
        update(session, Identifier.of(new String[] {namespace}, found.table()));
      }
    } catch (Exception e) {
      if (e instanceof ParseException) {
        LOG.debug("{} is a path, which has no entry", name, e);
      } else {
        warn(name, e);
      }
    }
  }

  /**
   * Writes the table's columns to the entry with this name. The table has already changed, so a
   * failure is only logged as a warning. All exceptions are caught, because metastores throw
   * checked exceptions that Scala does not declare.
   */
  static void update(SparkSession session, Identifier name) {
    try {
      CatalogTable entry = CatalogEntries.find(name);
      if (entry == null) {
        return;
      }
      TableIdentifier identifier = entry.identifier();
      StructType columns = read(session, TableOptions.json(CatalogEntries.options(entry)));
      // The session's catalog returns columns in this form.
      StructType known = CharVarcharUtils.replaceCharVarcharWithStringInSchema(columns);
      if (!known.equals(entry.schema())) {
        // The session's catalog would refuse to drop columns, so its external catalog is used.
        catalog(session)
            .externalCatalog()
            .alterTableDataSchema(identifier.database().get(), identifier.table(), columns);
      }
    } catch (Exception e) {
      warn(name.toString(), e);
    }
  }

  /**
   * Returns the columns for a new entry of an existing table. If they cannot be read, a warning is
   * logged, and the entry has no columns.
   */
  public static StructType of(SparkSession session, String options) {
    try {
      return read(session, options);
    } catch (Exception e) {
      warn("a new entry", e);
      return new StructType();
    }
  }

  private static void warn(String name, Exception e) {
    LOG.warn("The session catalog does not show the columns of {}: {}", name, e.getMessage(), e);
  }

  /** Returns the columns of a table; none if Hive's metastore does not accept their names. */
  private static StructType read(SparkSession session, String options) {
    StructType logged = (StructType) DataType.fromJson(Bridge.tables().columns(session, options));
    StructType columns = shown(CharVarcharUtils.getRawSchema(logged));
    return isForHive(columns) ? columns : new StructType();
  }

  private static boolean isForHive(DataType type) {
    if (type instanceof StructType struct) {
      return Arrays.stream(struct.fields())
          .allMatch(
              field -> !NOT_FOR_HIVE.matcher(field.name()).find() && isForHive(field.dataType()));
    }
    if (type instanceof ArrayType array) {
      return isForHive(array.elementType());
    }
    return !(type instanceof MapType map)
        || (isForHive(map.keyType()) && isForHive(map.valueType()));
  }

  /** Returns columns with their comments, but without other metadata from the log. */
  private static StructType shown(StructType columns) {
    StructType made = new StructType();
    for (StructField field : columns.fields()) {
      DataType type = shown(field.dataType());
      Option<String> comment = field.getComment();
      made =
          comment.isDefined()
              ? made.add(field.name(), type, field.nullable(), comment.get())
              : made.add(field.name(), type, field.nullable());
    }
    return made;
  }

  private static DataType shown(DataType type) {
    if (type instanceof StructType struct) {
      return shown(struct);
    }
    if (type instanceof ArrayType array) {
      return new ArrayType(shown(array.elementType()), array.containsNull());
    }
    return type instanceof MapType map
        ? new MapType(shown(map.keyType()), shown(map.valueType()), map.valueContainsNull())
        : type;
  }

  private static SessionCatalog catalog(SparkSession session) {
    return classic(session).sessionState().catalog();
  }

  private static org.apache.spark.sql.classic.SparkSession classic(SparkSession session) {
    return (org.apache.spark.sql.classic.SparkSession) session;
  }
}
