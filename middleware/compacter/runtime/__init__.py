"""What the package runs on: sync and async programs, threads, forks, SQLite and litellm."""
