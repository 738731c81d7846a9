"""Set before torch is imported: one thread, here and in the apps under test, unless --threads or the environment say more.

Threads of a small computation wait for each other actively; beside a busy process that makes the tests twenty times slower.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
