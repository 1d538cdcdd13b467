"""The forms in which models write calls. One module each; none knows the others' forms.

A dialect says whether text may begin its form, reads the form from a source, and returns what it
found as `Found`: names and arguments as written. Whether that is a call is decided in reading.py.
"""
