"""Black-box trials of the built `godwit`: they drive the executable and let the oracle judge.

The scripts in `scripts/` are thin doors to these modules. Nothing here imports the tool, and the
oracle (`../shared/oracle`, third-party to the project) is read in place and never copied.
"""
