"""`gt.optim`, beside `gt.client.nn`: `from gt.client import optim`."""

from gt.optim import *
from gt.optim import __all__ as __all__
