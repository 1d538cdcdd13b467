"""How many files and sockets this process may have open."""

from __future__ import annotations

ENOUGH = 65_536
"""A stream is two sockets; macOS calls a hard limit "unlimited" and refuses more than 10,240."""


def raise_open_files() -> tuple[int, int] | None:
    """Raise the soft limit to the hard one, 1024 being the default of most systems.

    Gives the limit before and after; None where there is none (Windows).
    """
    try:
        import resource
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    for wanted in (ENOUGH, 10_240):
        aim = wanted if hard == unlimited else min(hard, wanted)
        if soft == unlimited or aim <= soft:
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (aim, hard))
        except (OSError, ValueError):
            continue
        return soft, aim
    return soft, soft
