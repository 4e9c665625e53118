package io.deltalog.spark;

/** The data source under the name "delta", where that name is ours (DeltaName). */
public class DeltaAlias extends DeltalogSource {
  /** Returns the name, or the name of this class, which is unique. */
  @Override
  public String shortName() {
    return DeltaName.isOurs() ? DeltaName.NAME : DeltaAlias.class.getName();
  }
}
