from .cutting import chunks as chunks
from .parsing import count_records as count_records
from .parsing import rows as rows
from .records import Chunk as Chunk
from .records import Segment as Segment
from .records import SourceRow as SourceRow
