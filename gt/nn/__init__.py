"""Neural networks: `gt.client.nn`, under the name that users type."""

from gt.client.nn import *
from gt.nn import functional, init, utils
