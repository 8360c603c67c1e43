"""What `beaver check` and `beaver doctor` look at. Nothing here repairs, makes or sends anything.

`findings` is the record and how it is said; each other module examines one thing and returns findings.
"""
