"""The environment of the package: sync and async programs, threads, forks, SQLite and litellm."""
