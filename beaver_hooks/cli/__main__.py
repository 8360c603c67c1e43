"""`python -m beaver_hooks.cli` is `beaver`."""

from beaver_hooks.cli import main

main()
