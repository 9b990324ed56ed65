"""`python -m gt.top`: what a server is doing, live in the terminal. The code is `gt.inspect.top`."""

import sys

from gt.inspect.top import main

if __name__ == "__main__":
    sys.exit(main())
