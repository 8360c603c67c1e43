"""Gates: small independent policies. Each one looks at a candidate and gives a reason if it must not be stored."""
