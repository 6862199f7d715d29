"""`python -m tenlines` is the command `tenlines`."""

from tenlines.cli import main

if __name__ == "__main__":
    main()
