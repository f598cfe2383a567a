"""The UI in a real browser, outside the tests: `tools/screenshots` takes its pictures, `tools/pages` measures it.

`demo` starts a server with its demo from a copy of the package, and a browser that is signed in; `load` keeps it busy
with the `work` of a worker, `measure` opens one view after the other, and `report` writes docs/RESULTS-pages.md.
"""
