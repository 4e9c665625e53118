package io.deltalog.spark;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Stores the schemas that streams had when Spark analyzed their plans. A stream is started later,
 * and must then still have the same schema, but Spark does not check this.
 *
 * <p>Spark passes the same object of options when it asks for the schema and when it starts the
 * stream. This object is the key of the schema, which is dropped when the object is
 * garbage-collected.
 */
final class AnalyzedSchemas {
  private static final ReferenceQueue<Object> GONE = new ReferenceQueue<>();
  private static final Map<Key, String> SCHEMAS = new ConcurrentHashMap<>();

  private AnalyzedSchemas() {}

  /** Stores a schema, as JSON, for an object of options. */
  static void keep(Object options, String schema) {
    for (Object gone = GONE.poll(); gone != null; gone = GONE.poll()) {
      SCHEMAS.remove(gone);
    }
    SCHEMAS.put(new Key(options, GONE), schema);
  }

  /** Returns the schema that was stored for an object of options, or null. */
  static String of(Object options) {
    return SCHEMAS.get(new Key(options, null));
  }

  /** A weak reference to an object. Two keys are equal if they refer to the same object. */
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
