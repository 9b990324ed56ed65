"""`gt.client.modules.utils`, under the name that users type."""

from gt.client.modules.utils import *
from gt.client.modules.utils import __all__ as __all__
