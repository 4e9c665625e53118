"""Makes the pages of Parquet files unreadable. If a query still gives the right answer, it did not read the pages."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq


def destroy_pages(directory: Path) -> None:
    """Overwrites all pages of the data files of a table. Footers, statistics and Bloom filters are kept."""
    files = [file for file in directory.rglob("*.parquet") if "_delta_log" not in file.parts]
    assert files
    for file in files:
        footer, content = pq.read_metadata(file), bytearray(file.read_bytes())
        for group in range(footer.num_row_groups):
            for index in range(footer.num_columns):
                column = footer.row_group(group).column(index)
                starts = [column.data_page_offset]
                if column.has_dictionary_page:
                    starts.append(column.dictionary_page_offset)
                start, size = min(starts), column.total_compressed_size
                content[start : start + size] = b"\xff" * size
        file.write_bytes(content)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
