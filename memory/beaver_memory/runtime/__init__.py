"""The one door to a memory: `MemoryRuntime` takes requests and returns reports."""
