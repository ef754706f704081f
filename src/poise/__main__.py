"""`python -m poise`: the command line, where the `poise` script is not on the path."""

from poise.cli.main import main

if __name__ == "__main__":
    main()
