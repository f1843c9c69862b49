"""How far a gate can be trusted: simulations with the code that decides, beside exact figures where there are any."""

import os

# There are as many processes as cores: threads of the linear algebra library would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
