package io.deltalog.spark;

import java.util.List;
import java.util.Map;

/** The common base of DeltalogProcedure and BoundDeltalogProcedure. */
abstract class DescribedProcedure {
  protected final Map<String, ?> description;
  protected final boolean hasResult;

  /** Creates the procedure that `procedures.py` describes. */
  protected DescribedProcedure(Map<String, ?> description, boolean hasResult) {
    this.description = description;
    this.hasResult = hasResult;
  }

  public String name() {
    return text(description, "name");
  }

  public String description() {
    return text(description, "description");
  }

  /** Returns the name that plans show. */
  @Override
  public String toString() {
    return ProcedurePlans.NAMESPACE + "." + name();
  }

  protected List<Map<String, ?>> described() {
    return Unchecked.cast(description.get("parameters"));
  }

  protected static String text(Map<String, ?> described, String name) {
    return (String) described.get(name);
  }
}
