from .arrow import splits as splits
from .detection import open_table as open_table
from .form import FORMS as FORMS
from .form import Form as Form
from .table import Fault as Fault
from .table import Table as Table
