"""Vouches for a finished run: digests of its files, sealed by the organisers' key, and what a change puts in doubt.

| file | in one sentence |
|---|---|
| ``steps`` | which step of a run a file belongs to, what depends on it, and what to do |
| ``tree`` | digests of all files of a folder |
| ``keys`` | the organisers' key: made, kept and read |
| ``seal`` | a value with its digest and its signature, as a file |
| ``contents`` | what a receipt, and the record of a purge, say |
| ``compare`` | what is not as it was, each with what it makes doubtful |
"""
