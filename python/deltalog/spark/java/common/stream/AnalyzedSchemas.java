package io.deltalog.spark;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The schemas that Spark was told for streams when it analyzed them. Spark itself does not compare
 * them with the rows of a stream that is started later.
 *
 * <p>Spark passes the same object of options when it asks for the schema and when it starts the
 * stream. So the schema is found by this object, and goes with it.
 */
final class AnalyzedSchemas {
  private static final ReferenceQueue<Object> GONE = new ReferenceQueue<>();
  private static final Map<Key, String> SCHEMAS = new ConcurrentHashMap<>();

  private AnalyzedSchemas() {}

  /** Keeps a schema, as JSON, for an object of options. */
  static void keep(Object options, String schema) {
    for (Object gone = GONE.poll(); gone != null; gone = GONE.poll()) {
      SCHEMAS.remove(gone);
    }
    SCHEMAS.put(new Key(options, GONE), schema);
  }

  /** Returns the schema for an object of options, or null. */
  static String of(Object options) {
    return SCHEMAS.get(new Key(options, null));
  }

  /** An object, compared by its identity. */
  private static final class Key extends WeakReference<Object> {
    private final int hash;

    Key(Object options, ReferenceQueue<Object> gone) {
      super(options, gone);
      this.hash = System.identityHashCode(options);
    }

    @Override
    public boolean equals(Object other) {
      return this == other
          || (other instanceof Key key && key.get() != null && key.get() == this.get());
    }

    @Override
    public int hashCode() {
      return hash;
    }
  }
}
