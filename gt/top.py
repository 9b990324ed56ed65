"""`python -m gt.top`: the state of a server, live in the terminal. The code is `gt.inspect.top`."""

import sys

from gt.inspect.top import main

if __name__ == "__main__":
    sys.exit(main())
