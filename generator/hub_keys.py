"""Keys by which the values of zero-to-jupyterhub or BinderHub are told from Roost's own."""

from typing import Final

HUB_KEYS: Final = frozenset({"scheduling", "singleuser", "prePuller", "hub", "proxy", "cull"})
# Sections under which parent charts nest a hub.
_NESTING_KEYS: Final = frozenset({"binderhub", "jupyterhub"})
# Roost's values have sections of the same names.
_ALSO_OURS: Final = frozenset({"singleuser", "prePuller"})
NEVER_OURS: Final = (HUB_KEYS | _NESTING_KEYS) - _ALSO_OURS
