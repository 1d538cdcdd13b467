"""Child processes with limits for work on files from outside: fixed functions of this package.

A 5 KB workbook with one cell at XFD1048576 aborts the process that parses it, and no `except`
catches that (tafia/calamine#693). So nothing here is parsed in the bot's own process. The way in
is `chathands.workers.pool.WorkerPool`; it is not imported here, because children import this
package too and have no use for the settings library.
"""
