"""``python -m screenpath``."""

from screenpath.cli import main

if __name__ == "__main__":
    main()
