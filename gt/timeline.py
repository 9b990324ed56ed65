"""`python -m gt.timeline`: a timeline of an instruction log. The code is `gt.inspect.timeline`."""

import sys

from gt.inspect.timeline import main

if __name__ == "__main__":
    sys.exit(main())
