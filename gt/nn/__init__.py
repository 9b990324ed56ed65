"""Neural networks: `gt.client.nn`, under the name that users type."""

from gt.client.nn import *
from gt.client.nn import __all__ as __all__
