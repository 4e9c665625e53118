package io.deltalog.spark;

/** The class of our session catalog in this release of Spark. */
public class CatalogClass {
  /** Those of newer releases come first. The others could not be compiled. */
  private static final String[] NAMES = {"TableLikeCatalog", "TableInfoCatalog", "DeltalogCatalog"};

  private CatalogClass() {}

  public static String name() {
    String ours = CatalogClass.class.getPackage().getName();
    for (int i = 0; i < NAMES.length; i++) {
      String name = ours + "." + NAMES[i];
      if (CatalogClass.class.getClassLoader().getResource(name.replace('.', '/') + ".class") != null) {
        return name;
      }
    }
    throw new IllegalStateException("the jar of deltalog has no catalog");
  }
}
