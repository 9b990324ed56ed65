"""`gt.client.modules.init`, under the name that users type."""

from gt.client.modules.init import *
from gt.client.modules.init import __all__ as __all__
