"""How a command ends: an exit status, and at most one line on standard error."""

import atexit
import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click

from fedsbc.errors import FedsbcError, RunError
from sims import signals

OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
"""Kinds of OSError that are about the disk, not about us."""


def exit_status(command: Callable[[], int | None], debug: bool) -> int:
    """Run a command and return its exit status: 0 only when the job was done.

    Args:
        command: what to run; it may return a status, as typer does for one that exits early.
        debug: print the traceback of an error before its line.
    """
    try:
        status = command() or OK
    except (KeyboardInterrupt, click.Abort):
        status = INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return USAGE
    except click.ClickException as error:
        return _say(_usage(error), USAGE)
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _say(str(error if isinstance(error, FedsbcError) else unexpected(error)), FAILED)
    if status == INTERRUPTED:  # typer makes this of what Ctrl-C raises, and SIGTERM raises the same
        return _say("interrupted", signals.exit_status())
    return status


_crashes_at_exit = False


def skip_exit_hooks() -> None:
    """Remember that a library is in a state in which its own clean-up would crash."""
    global _crashes_at_exit
    _crashes_at_exit = True


def leave(status: int) -> NoReturn:
    """End the process with a status.

    Exit hooks run; the interpreter is not taken apart, which with torch in it takes a second.
    """
    if not _crashes_at_exit:
        atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def unexpected(error: Exception, folder: Path | None = None) -> RunError:
    """Keep the traceback of an error that we did not foresee; return an error that says where.

    A disk that is full, or may not be written to, needs no traceback and has no room for one.

    Args:
        error: the one that was caught.
        folder: the run's, if it exists by now; its `errors.log` gets the traceback.
    """
    if isinstance(error, OSError) and error.errno in UNWRITABLE:
        return RunError(f"{error.filename or folder or 'a file'}: {error.strerror}")
    text = "".join(traceback.format_exception(error))
    if folder is not None and folder.is_dir():
        log = folder / "errors.log"
        with log.open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    else:
        handle, name = tempfile.mkstemp(prefix="fedsbc-", suffix=".log", text=True)
        log = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
    return RunError(f"unexpected {type(error).__name__}: {error} (traceback in {log})")


def _usage(error: click.ClickException) -> str:
    """Say what was wrong with a command line, and where its help is."""
    context = getattr(error, "ctx", None)
    help_command = f"{context.command_path} --help" if context else "fedsbc --help"
    return f"{error.format_message()} (see {help_command})"


def _say(message: str, status: int) -> int:
    """Print one line to standard error."""
    line = " ".join(message.split())
    print(f"fedsbc: {line}", file=sys.stderr)
    return status
