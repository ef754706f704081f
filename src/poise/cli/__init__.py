"""The command line: one file a verb. Heavy imports stay inside the functions, so that `poise --help` is instant."""
