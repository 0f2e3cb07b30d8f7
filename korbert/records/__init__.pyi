from .arrow import splits as splits
from .form import FORMS as FORMS
from .form import Form as Form
from .forms import open_table as open_table
from .table import Fault as Fault
from .table import Table as Table
