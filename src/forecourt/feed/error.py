"""What goes wrong with a feed as a whole; what is wrong with one row goes into the report instead."""

__all__ = ["FeedError"]


class FeedError(Exception):
    """The file cannot be used at all: empty, unreadable, not a feed, or broken off in the middle.

    The message is for the operator. It holds no value of the file, and nothing is to be imported: the last good
    inventory stays (FEEDS.md, point 11).
    """
