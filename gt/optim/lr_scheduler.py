"""Learning-rate schedules: `gt.client.lr_scheduler`, under the name that users type."""

from gt.client.lr_scheduler import *
from gt.client.lr_scheduler import __all__ as __all__
