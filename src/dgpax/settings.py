"""How dgpax sets up JAX, without importing it: 64-bit floats, and a cache of compiled programs where it is wanted."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from .errors import DgpaxWarning

MOST_BYTES = 2**28
"""What the cache may hold: a fit of the command line leaves about 150 programs, 2 MB."""
KEPT = 0.8
"""The part of it that is left when it has grown too large."""
OFF, ON = ("off", "0", "no", "false"), ("", "on", "1", "yes", "true")


def user_cache() -> Path:
    """The folder `dgpax` in the user's cache folder."""
    home = Path.home()
    caches = {
        "darwin": home / "Library" / "Caches",
        "win32": Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"),
    }
    return caches.get(sys.platform, Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")) / "dgpax"


def wide_floats() -> None:
    """64 bits, unless the environment's JAX_ENABLE_X64 says something else."""
    import jax

    if "JAX_ENABLE_X64" not in os.environ:
        jax.config.update("jax_enable_x64", True)


def cache_compilations(folder: str | os.PathLike[str] | None = None, *, most_bytes: int = MOST_BYTES) -> Path | None:
    """Keep what JAX compiles in a folder, so that the next process needn't compile it again; says which.

    Without `folder` it is the one that the environment's DGPAX_CACHE names, else one in the user's cache folder;
    DGPAX_CACHE=off means none, and a folder that JAX was given before stays. The command line calls this by itself.
    Several processes may share the folder, but only users who trust each other: what is in it is run. When it holds
    more than `most_bytes`, what wasn't used for longest goes. An entry that can't be read is compiled anew. None comes
    back where there is no cache, since it is off or the folder can't be written.

    >>> import dgpax
    >>> folder = dgpax.cache_compilations()
    """
    import jax

    from . import __version__

    word = os.environ.get("DGPAX_CACHE", "")
    given = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    if folder is None and (given or word.lower() in OFF):
        return Path(given) if given else None
    chosen = folder if folder is not None else None if word.lower() in ON else word
    try:
        home = user_cache() / "compiled" if chosen is None else Path(chosen).expanduser()
        own = home / f"dgpax-{__version__}-jax-{jax.__version__}"
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_room(home, most_bytes)
        if not os.access(own, os.W_OK | os.X_OK):
            raise PermissionError(f"{own} isn't writable")
    except (OSError, RuntimeError) as error:  # the latter where the user has no home
        if chosen is not None:
            text = f"Programs can't be kept in {chosen}, and are compiled in every process anew: {error}."
            warnings.warn(text, DgpaxWarning, stacklevel=2)
        return None
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache", UserWarning)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if given != str(own):
        jax.config.update("jax_compilation_cache_dir", str(own))
        if given:  # and perhaps in use
            from jax.experimental.compilation_cache import compilation_cache

            compilation_cache.reset_cache()
    return own


def _make_room(home: Path, most_bytes: int) -> None:
    """Delete entries that are empty, and if there is too much in all versions' folders, those not used for longest."""
    found = []
    for path in home.glob("dgpax-*-jax-*/*-cache"):
        try:
            state = path.stat()
        except FileNotFoundError:  # another process deleted it
            continue
        found.append((max(state.st_atime, state.st_mtime) if state.st_size else 0.0, state.st_size, path))
    held, most = sum(size for _, size, _ in found), most_bytes
    for _, size, path in sorted(found):
        if size and held <= most:
            break
        most = int(KEPT * most_bytes) if size else most
        path.unlink(missing_ok=True)
        held -= size


def when_jax_is_imported(action: Callable[[], object]) -> None:
    """Do it now if JAX is there, else as soon as somebody imports it."""
    if "jax" in sys.modules:
        action()
    else:
        FINDER.actions.append(action)
        if FINDER not in sys.meta_path:
            sys.meta_path.insert(0, FINDER)


class JaxFinder:
    """Finds JAX where all others do, and sees to it that the actions follow its import."""

    def __init__(self) -> None:
        self.actions: list[Callable[[], object]] = []
        self.asking = False

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "jax" or self.asking:
            return None
        self.asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.asking = False
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = self._followed(spec.loader.exec_module)  # pyright: ignore[reportAttributeAccessIssue]
        return spec

    def _followed(self, load: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
        def exec_module(module: ModuleType) -> None:
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            while self.actions:
                self.actions.pop(0)()

        return exec_module


FINDER = JaxFinder()
