"""The compiled module, which cffi makes of native.h and the public headers."""
from typing import Any

ffi: Any
lib: Any
