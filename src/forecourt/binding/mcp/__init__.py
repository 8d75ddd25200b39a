"""The Model Context Protocol: the skills of a contract as tools that an assistant calls.

`MCPBinding` reads and writes messages; what runs it opens the sockets. It needs no SDK, and tests/interop holds it
against the answers of the official one.
"""

from forecourt.binding.mcp.dispatch import Call, MCPBinding
from forecourt.binding.mcp.header import HEADERS
from forecourt.binding.mcp.place import Place
from forecourt.binding.mcp.request import request_headers
from forecourt.binding.mcp.tool import Toolbox, tool_name

__all__ = ["HEADERS", "Call", "MCPBinding", "Place", "Toolbox", "request_headers", "tool_name"]
