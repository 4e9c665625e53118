package io.deltalog.spark;

/**
 * Makes all unchecked casts to generic types: for Scala collections, for fields of Spark that
 * reflection reads, for values in JSON, and for results of Scala methods whose Java signatures lack
 * the type arguments.
 *
 * <p>The result gets the type that the caller expects, so it must not be passed to an overloaded
 * method.
 */
final class Unchecked {
  private Unchecked() {}

  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
  static <T> T cast(Object value) {
    return (T) value;
  }
}
