"""One HTML page about runs that needs nothing but itself to be read, and the same page live."""

from maxplore.report.page import page, write_page

__all__ = ["page", "write_page"]
