"""`python -m beaver_hooks.config` prints the JSON Schema of a configuration file, for editors."""

import json
import sys

from beaver_hooks.config.schema import config_schema


def main() -> None:
    """Print the schema: the host's own settings, and open sections for the plugins."""
    sys.stdout.write(json.dumps(config_schema(others=True), indent=2) + "\n")


if __name__ == "__main__":
    main()
