"""What a text of a feed says, one subject a module (FEEDS.md, "What real files do, and what is right").

Every function returns the value, or None where there is none, and the reasons for which the value differs from what
was written or was dropped. Nothing is invented, and nothing raises.
"""
