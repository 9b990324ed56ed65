"""`gt.client.modules.functional`, under the name that users type."""

from gt.client.modules.functional import *
from gt.client.modules.functional import __all__ as __all__
