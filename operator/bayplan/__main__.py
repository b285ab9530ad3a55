"""`python -m bayplan` is `bayplan`."""

from bayplan.cli import main

if __name__ == "__main__":
    main()
