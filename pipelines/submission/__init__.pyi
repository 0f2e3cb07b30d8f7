from . import bundle as bundle
