package io.deltalog.spark;

import java.lang.reflect.Field;
import java.util.Map;
import java.util.Queue;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.ParquetRuntimeException;
import org.apache.parquet.column.page.DictionaryPage;
import org.apache.parquet.column.page.Page;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;

/**
 * Checks the sizes that a Parquet file claims before memory is allocated for them.
 *
 * <pre>
 * footer ── a column chunk lies within the file
 * page ──── its values are not more than its compressed bytes can hold
 *           its dictionary has no more entries than bytes
 * </pre>
 *
 * <p>Sizes up to LARGE are not checked, because they cannot crash a process.
 */
final class PageClaims {
  /** A page of up to this many bytes is always accepted. */
  static final long LARGE = 64L << 20;

  /** The maximum memory per byte of a page, in bytes: an int for each bit, and the page itself. */
  private static final long BYTES_FOR_BYTE = 33;

  private final ParquetFileReader file;
  private final Path path;
  private final long ratio;
  private long largest;
  private boolean sawPages;

  private PageClaims(ParquetFileReader file, Path path, long ratio, long largest) {
    this.file = file;
    this.path = path;
    this.ratio = ratio;
    this.largest = largest;
  }

  /** Checks the footer of an open file of the given size. */
  static PageClaims of(ParquetFileReader file, Path path, long size) {
    long ratio = 1;
    long largest = 0;
    for (BlockMetaData block : file.getRowGroups()) {
      for (ColumnChunkMetaData chunk : block.getColumns()) {
        if (isLocked(chunk)) {
          continue;
        }
        long compressed = chunk.getTotalSize();
        if (compressed < 0 || (compressed > LARGE && chunk.getStartingPos() > size - compressed)) {
          throw damaged(
              path,
              "the footer of the Parquet file claims "
                  + compressed
                  + " bytes for a column chunk, in a file of "
                  + size
                  + " bytes");
        }
        long most = ratio(chunk.getCodec());
        ratio = Math.max(ratio, most);
        largest =
            Math.max(
                largest, Math.min(chunk.getTotalUncompressedSize(), product(compressed, most)));
      }
    }
    return new PageClaims(file, path, ratio, largest);
  }

  /**
   * Returns whether a chunk belongs to an encrypted column whose key the reader does not have. Such
   * a column is not read; a query that needs it fails.
   */
  private static boolean isLocked(ColumnChunkMetaData chunk) {
    try {
      chunk.getTotalSize();
      return false;
    } catch (ParquetRuntimeException e) {
      return true;
    }
  }

  ParquetFileReader file() {
    return file;
  }

  /** Checks the pages of a row group, which are still compressed. */
  void check(PageReadStore pages) {
    Field readers = HiddenFields.orNull(pages.getClass(), "readers");
    if (readers == null) {
      return;
    }
    try {
      for (Object reader : ((Map<?, ?>) readers.get(pages)).values()) {
        Field dictionary = HiddenFields.orNull(reader.getClass(), "compressedDictionaryPage");
        Field data = HiddenFields.orNull(reader.getClass(), "compressedPages");
        if (dictionary == null || data == null) {
          return;
        }
        start();
        checkDictionary((DictionaryPage) dictionary.get(reader));
        for (Object page : (Queue<?>) data.get(reader)) {
          checkSize((Page) page);
        }
      }
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Forgets the sizes of chunks that the footer claims, because the sizes of pages, which are
   * smaller, are now known.
   */
  private void start() {
    if (!sawPages) {
      sawPages = true;
      largest = 0;
    }
  }

  private void checkDictionary(DictionaryPage page) {
    if (page == null) {
      return;
    }
    checkSize(page);
    int entries = page.getDictionarySize();
    if (entries < 0 || (entries > LARGE / 16 && entries > page.getUncompressedSize())) {
      throw damaged(
          path,
          "a dictionary of the Parquet file claims "
              + entries
              + " entries in "
              + page.getUncompressedSize()
              + " bytes");
    }
  }

  private void checkSize(Page page) {
    long claimed = page.getUncompressedSize();
    long compressed = page.getCompressedSize();
    if (claimed < 0
        || (claimed > LARGE
            && (claimed > product(compressed, ratio)
                || claimed > Runtime.getRuntime().maxMemory()))) {
      throw damaged(
          path,
          "a page of the Parquet file claims "
              + claimed
              + " bytes of values, in "
              + compressed
              + " compressed bytes");
    }
    largest = Math.max(largest, claimed);
  }

  /**
   * Returns whether memory ran out although a file with true claims would have needed less than was
   * available.
   */
  boolean needLessThan(long free) {
    return product(largest, BYTES_FOR_BYTE) + LARGE < free;
  }

  /** Returns the maximum number of bytes that a codec can expand one byte to. */
  private static long ratio(CompressionCodecName codec) {
    return switch (codec) {
      case UNCOMPRESSED -> 1;
      case SNAPPY -> 22; // Three bytes can encode a copy of 64 bytes.
      case LZ4, LZ4_RAW, LZO -> 256;
      case GZIP -> 1032;
      case ZSTD -> 1 << 15; // Four bytes can encode a block of 128 KiB.
      default -> Integer.MAX_VALUE;
    };
  }

  private static long product(long bytes, long times) {
    return bytes > Long.MAX_VALUE / 2 / times ? Long.MAX_VALUE / 2 : bytes * times;
  }

  static FileFault damaged(Path path, String message) {
    return new FileFault(
        FileFault.CORRUPT, message, "restore the file, or remove it from the table", path, null);
  }
}
