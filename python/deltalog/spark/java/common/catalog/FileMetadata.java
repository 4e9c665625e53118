package io.deltalog.spark;

import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.types.DataType;

/** The column _metadata that a scan of files provides. */
public class FileMetadata implements MetadataColumn {
  private final FileFormat format;

  public FileMetadata(FileFormat format) {
    this.format = format;
  }

  @Override
  public String name() {
    return format.createFileMetadataCol().name();
  }

  @Override
  public DataType dataType() {
    return format.createFileMetadataCol().dataType();
  }

  @Override
  public boolean isNullable() {
    return false;
  }
}
