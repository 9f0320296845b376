"""The fixtures that every drill can ask for."""
from drill import fabric, mirrors, owner, perseas  # noqa: F401
