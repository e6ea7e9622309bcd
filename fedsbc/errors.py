"""The errors that users meet.

FedsbcError (ValueError)
 |- ConfigError    a config, an option or a command that cannot be used as given
 |- DataError      a data set or partition that cannot be had as asked
 |- UpdateError    a vector or update that must not be used (not finite, wrong length)
 |- WireError      bytes that are not a payload of ours
 `- RunError       a run that could not do its job
     `- StatesLost     clients' states are gone; the last checkpoint still has those of its round

Each message says where, what was given, what is expected, and what to do, in one line.
Programmer errors are `assert`s, never one of these.
"""


class FedsbcError(ValueError):
    """Base of every error that is meant for a user; the command line prints it as one line."""


class ConfigError(FedsbcError):
    """A config, an option or a command that cannot be used as given."""


class DataError(FedsbcError):
    """A data set or a partition that cannot be had as asked."""


class UpdateError(FedsbcError):
    """A vector or an update that must not be used: not finite, or of the wrong length."""


class WireError(FedsbcError):
    """Bytes that are not a payload of ours."""


class RunError(FedsbcError):
    """A run that could not do its job."""


class StatesLost(RunError):
    """Clients' states are gone with the node that kept them; a run goes back to its checkpoint."""
