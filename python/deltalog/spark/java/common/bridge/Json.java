package io.deltalog.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import java.util.Map;

/** Reads and writes JSON, in which Java and Python exchange data. */
public class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  /** Returns a map, a list, an array or a value as JSON. */
  public static String text(Object value) {
    try {
      return MAPPER.writeValueAsString(value);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Returns the fields of an object; its arrays are lists. */
  public static <V> Map<String, V> object(String text) {
    return Unchecked.cast(value(text, Map.class));
  }

  /** Returns the elements of an array. */
  public static <T> List<T> list(String text) {
    return Unchecked.cast(value(text, List.class));
  }

  /** Parses JSON as a value of the given class. */
  public static <T> T value(String text, Class<T> type) {
    try {
      return MAPPER.readValue(text, type);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }
}
