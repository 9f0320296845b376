"""The fixtures that every drill can ask for."""
from authority import authority  # noqa: F401
from drill import fabric, mirrors, owner, perseas  # noqa: F401
