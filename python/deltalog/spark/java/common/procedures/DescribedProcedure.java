package io.deltalog.spark;

import java.util.Map;

/** What the two forms of a procedure that Python carries out have in common. */
abstract class DescribedProcedure {
  protected final Map description;
  protected final boolean hasResult;

  /** Creates the procedure that `procedures.py` describes. */
  protected DescribedProcedure(Map description, boolean hasResult) {
    this.description = description;
    this.hasResult = hasResult;
  }

  public String name() {
    return text(description, "name");
  }

  public String description() {
    return text(description, "description");
  }

  /** Returns the name, as plans show it. */
  @Override
  public String toString() {
    return ProcedurePlans.NAMESPACE + "." + name();
  }

  protected static String text(Map described, String name) {
    return (String) described.get(name);
  }
}
