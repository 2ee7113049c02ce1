"""Start `roost`: find the command, turn errors into one line each and an exit code.

Results go to stdout, messages to stderr. Exit codes: 0 done, 1 something was found (faulty values,
a difference, an error of the install), 2 it couldn't be done (wrong usage, nothing to read).
"""

import atexit
import errno
import gc
import io
import os
import sys

from generator.faults import GeneratorError, UsageError, printable_lines

DONE = 0
FAULTY = 1
WRONG_USAGE = 2
INTERRUPTED = 130
# Out of disk space, quota or file size.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = [_as_utf8(argument) for argument in (sys.argv[1:] if argv is None else argv)]
    _write_utf8()
    if argv is None and arguments[:1] == ["render"]:
        _stop_garbage_collection()
    try:
        try:
            code = _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of stdout has closed it (`| head`). Python flushes again at exit: give it
        # somewhere to write.
        _write_nowhere()
        return DONE
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _write_nowhere()
        sys.stderr.write(
            f"roost: not all could be written ({error.strerror}): free some room, or write"
            " elsewhere\n"
        )
        return FAULTY
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _stop_garbage_collection() -> None:
    """Collect no garbage in this process, nor at its end.

    A collection would take a fifth of a render's time, and free little memory.
    """
    gc.disable()
    atexit.register(gc.freeze)


def _write_nowhere() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    from roost import cli  # noqa: PLC0415 - after `_stop_garbage_collection`: importing makes most of a render's garbage

    try:
        return cli.run(arguments)
    except UsageError as error:
        sys.stderr.write(f"{printable_lines(str(error))}\n")
        return WRONG_USAGE
    except GeneratorError as error:
        sys.stderr.write(f"{printable_lines(str(error))}\n")
        return FAULTY


def _as_utf8(argument: str) -> str:
    """An argument, decoded as UTF-8 even if the locale has another encoding."""
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeError:
        return argument


def _write_utf8() -> None:
    """Write UTF-8 to stdout and stderr in every locale. stderr escapes what it can't encode."""
    for stream, errors in ((sys.stdout, "strict"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


if __name__ == "__main__":
    sys.exit(main())
