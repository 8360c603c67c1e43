"""The examinations of `beaver check` and `beaver doctor`. They repair, make and send nothing.

`findings` has the record of a finding and its output; each other module examines one subject and returns findings.
"""
