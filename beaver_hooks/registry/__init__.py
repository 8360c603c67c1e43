"""Which plugins there are: found, checked, loaded, registered, removed."""
