"""`python -m korbert`: the same as the `korbert` command."""

from importlib.metadata import entry_points

if __name__ == "__main__":
    (command,) = entry_points(group="console_scripts", name="korbert")
    command.load()()
