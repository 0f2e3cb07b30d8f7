"""Files as streams: decompression, encoding detection, CSV records. Knows no file formats beyond that.

1. `frames.py` opens and decompresses a file.
2. `encodings.py` detects its encoding, and turns it into UTF-8.
3. `csv_records.py` makes records of lines with quoted fields.
"""
