"""The reference agent: real conversations over the host. A user of the host like any other."""
