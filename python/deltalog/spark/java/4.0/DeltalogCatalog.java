package io.deltalog.spark;

/** The catalog of Spark 4.0. */
public final class DeltalogCatalog extends BaseCatalog {}
