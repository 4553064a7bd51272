"""The one exception whose text is meant for the person at the command line."""


class UserError(Exception):
    """Bad input, said in one clear sentence that names the setting to change."""
