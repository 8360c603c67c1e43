"""Techniques that several parts of Beaver Hooks need and that know nothing about memory. Import the module you need.

A module whose library is not installed names the extra that installs it: `locks` (filelock), `sqlite` (apsw), `http`
(httpx), `redact` (google-re2, ahocorasick-rs).
"""
