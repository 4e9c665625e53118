package io.deltalog.spark;

/** deltalog's data source under the name "delta", if that name refers to deltalog (DeltaName). */
public class DeltaAlias extends DeltalogSource {
  /** Returns the name "delta", or otherwise the name of this class, which is unique. */
  @Override
  public String shortName() {
    return DeltaName.isOurs() ? DeltaName.NAME : DeltaAlias.class.getName();
  }
}
